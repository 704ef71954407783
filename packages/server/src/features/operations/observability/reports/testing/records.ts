import type { Db } from '../../../../../kernel/db/db.ts';
import type { EndedRecord } from '../../../traces/api.ts';
import { appendBatch, expandBatch } from '../../../traces/store.ts';

let count = 0;

/** Returns a record of a turn that a client asked for, with some fields changed. */
export function record(over: Partial<EndedRecord> = {}): EndedRecord {
  count += 1;
  return {
    id: `tn_${count}`,
    kind: 'turn',
    traceId: String(count).padStart(32, '0'),
    agentId: 'default',
    principalId: 'token:root',
    origin: 'rpc',
    channelType: 'gateway',
    channelId: 'desk',
    startedAtMs: 1000,
    endedAtMs: 1100,
    outcome: 'ok',
    endReason: 'stop',
    error: null,
    model: 'mock/mock-fast',
    modelCalls: 1,
    toolCalls: 0,
    toolErrors: 0,
    tokens: { in: 100, out: 10, cached: 0, cacheWritten: 0 },
    costNano: 1000,
    synthetic: false,
    refs: {},
    facts: {},
    steps: [],
    droppedSteps: 0,
    ...over,
  };
}

/** Stores records as the recorder does. */
export async function storeRecords(db: Pick<Db, 'telemetry'>, records: readonly EndedRecord[]): Promise<void> {
  await db.telemetry(appendBatch, { records: records.map((one) => JSON.stringify(one)).join('\n') });
  await db.telemetry(expandBatch, undefined);
}
