import { operation, query } from '../../../kernel/db/operation.ts';
import type { TraceRow } from './tables.ts';

const columns = [
  'id',
  'kind',
  'traceId',
  'rootRunId',
  'parentId',
  'conversationRef',
  'sessionKey',
  'agentId',
  'principalId',
  'origin',
  'messageId',
  'channelType',
  'channelId',
  'startedAtMs',
  'endedAtMs',
  'outcome',
  'endReason',
  'errorKind',
  'model',
  'modelCalls',
  'toolCalls',
  'toolErrors',
  'inputTokens',
  'outputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'costNano',
  'synthetic',
  'detailJson',
] as const satisfies readonly (keyof TraceRow)[];

const insert = query<TraceRow>(({ db, each }) =>
  db
    .insertInto('traceRecord')
    .values(each(columns))
    // A write whose answer was lost is repeated.
    .onConflict((conflict) => conflict.column('id').doNothing()),
);

/** Adds records, in their order. */
export const appendRecords = operation('traces.append', async (tx, { rows }: { readonly rows: readonly TraceRow[] }): Promise<void> => {
  for (const row of rows) await tx.run(insert, row);
});

/** Records of one read at most. */
const pageRows = 1000;

const byTrace = query<{ traceId: string }, TraceRow>(({ db, p }) =>
  db.selectFrom('traceRecord').select(columns).where('traceId', '=', p('traceId')).orderBy('startedAtMs').orderBy('seq').limit(pageRows),
);

const byRoot = query<{ rootRunId: string }, TraceRow>(({ db, p }) =>
  db.selectFrom('traceRecord').select(columns).where('rootRunId', '=', p('rootRunId')).orderBy('startedAtMs').orderBy('seq').limit(pageRows),
);

/** The parts of a turn are numbered: `tn_…`, `tn_….1`, `tn_….2`. */
const byId = query<{ id: string; firstPart: string; lastPart: string }, TraceRow>(({ db, p }) =>
  db
    .selectFrom('traceRecord')
    .select(columns)
    .where((where) => where.or([where('id', '=', p('id')), where.and([where('id', '>=', p('firstPart')), where('id', '<', p('lastPart'))])]))
    .orderBy('startedAtMs')
    .orderBy('seq')
    .limit(pageRows),
);

/** Returns the records of a trace, oldest first. */
export const recordsOfTrace = operation('traces.ofTrace', async (tx, input: { readonly traceId: string }): Promise<TraceRow[]> =>
  tx.all(byTrace, input),
);

/** Returns the records of everything that one request started, oldest first. */
export const recordsOfRoot = operation('traces.ofRoot', async (tx, input: { readonly rootRunId: string }): Promise<TraceRow[]> =>
  tx.all(byRoot, input),
);

/** Returns a record and the later parts of its turn, oldest first. */
export const recordsById = operation('traces.byId', async (tx, { id }: { readonly id: string }): Promise<TraceRow[]> =>
  tx.all(byId, { id, firstPart: `${id}.`, lastPart: `${id}/` }),
);

export const traceOperations = [appendRecords, recordsOfTrace, recordsOfRoot, recordsById];
