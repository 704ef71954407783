import type { TraceRecord } from '@gatehouse/contract';
import { sql, telemetrySql, type TestServer } from '@gatehouse/testkit';
import type { EndedRecord } from '../../traces/api.ts';
import { toRow } from '../../traces/record-row.ts';

type Step = TraceRecord['steps'][number];
export type StepSpec = Pick<Step, 'kind' | 'name'> & Partial<Step>;
export type RecordSpec = Omit<Partial<EndedRecord>, 'steps'> & { readonly steps?: readonly StepSpec[] };

let count = 0;

/** Content that must not appear in any report. */
export const canary = 'CANARY-Grüße-von-Oma';

/** A reference of a conversation, by a number. */
export const refOf = (number: number) => `cv_${String(number).padStart(43, '0')}`;

/** Returns a record as the capture of turns makes it; without an outcome it is a turn that went well. */
export function makeRecord({ steps = [], ...given }: RecordSpec = {}): EndedRecord {
  count += 1;
  const id = `tn_00000000-0000-7000-8000-${String(count).padStart(12, '0')}`;
  const tools = steps.filter(({ kind }) => kind === 'tool');
  return {
    id,
    kind: 'turn',
    traceId: count.toString(16).padStart(32, '0'),
    conversationRef: refOf(count),
    sessionKey: `user${count}:web`,
    agentId: 'default',
    principalId: 'token:root',
    origin: 'rpc',
    startedAtMs: 1_790_000_000_000 + count * 1000,
    endedAtMs: 1_790_000_000_500 + count * 1000,
    outcome: 'ok',
    endReason: 'stop',
    error: null,
    model: 'mock/mock-fast',
    modelCalls: 1,
    toolCalls: tools.length,
    toolErrors: tools.filter(({ outcome }) => outcome === 'error' || outcome === 'denied').length,
    tokens: { in: 100, out: 10, cached: 40, cacheWritten: 0 },
    costNano: 1_000,
    synthetic: false,
    refs: {},
    facts: {},
    steps: steps.map((step, at) => ({ id: at, at: at * 10, ms: 5, outcome: 'ok', ...step })),
    droppedSteps: 0,
    ...given,
  };
}

/** A failed call, with the texts that the default policy for content keeps of it. */
export function failedCall(name: string, kind = 'tool_error', text = `it broke: ${canary}`): StepSpec {
  return {
    kind: 'tool',
    name,
    outcome: 'error',
    error: { kind, text },
    input: { digest: 'aaaaaaaaaaaaaaaa', bytes: 20, preview: canary },
    output: { digest: 'bbbbbbbbbbbbbbbb', bytes: text.length, preview: text },
  };
}

const snake = (name: string) => name.replaceAll(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`);

/** Stores records past the server, as its recorder does. */
export async function storeRecords({ homeDir }: Pick<TestServer, 'homeDir'>, ...records: readonly EndedRecord[]): Promise<void> {
  for (const record of records) {
    const row = Object.entries(toRow(record));
    const columns = row.map(([name]) => snake(name)).join(', ');
    await telemetrySql(homeDir, `INSERT INTO trace_record (${columns}) VALUES (${row.map(() => '?').join(', ')})`, ...row.map(([, value]) => value));
  }
}

let parts = 0;

/** Stores one part of a message to a chat, past the server. */
export async function storePart(
  { homeDir }: Pick<TestServer, 'homeDir'>,
  given: {
    readonly state: string;
    readonly createdAtMs: number;
    readonly conversationRef?: string;
    readonly turnId?: string;
    readonly id?: string;
    readonly errorKind?: string;
    readonly notBeforeMs?: number;
  },
): Promise<void> {
  parts += 1;
  const isOpen = given.state === 'pending' || given.state === 'sending';
  const row = {
    id: `ob_${parts}-01`,
    opKey: `staged:${parts}`,
    part: 1,
    parts: 1,
    digest: '',
    instance: 'net',
    channelType: 'irc',
    conversationId: 'ada',
    conversationKind: 'direct',
    text: canary,
    attempts: 1,
    notBeforeMs: Number.MAX_SAFE_INTEGER,
    expiresAtMs: Number.MAX_SAFE_INTEGER,
    error: canary,
    agentId: 'default',
    principalId: 'token:root',
    endedAtMs: isOpen ? null : given.createdAtMs,
    ...given,
  };
  const columns = Object.keys(row).map(snake);
  await sql(homeDir, `INSERT INTO outbound_message (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`, ...Object.values(row));
}
