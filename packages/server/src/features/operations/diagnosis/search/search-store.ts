import { operation } from '../../../../kernel/db/operation.ts';
import type { TraceRow } from '../records.ts';
import type { Condition } from './where.ts';
import { ofMessage, whereSql } from './where-sql.ts';

/** Columns of a row without its steps. */
const columns = [
  'id',
  'kind',
  'traceId',
  'rootRunId',
  'conversationRef',
  'sessionKey',
  'agentId',
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
] as const satisfies readonly (keyof TraceRow)[];

export type FoundRow = Pick<TraceRow, (typeof columns)[number]>;

export interface TraceFilter {
  readonly fromMs: number;
  readonly messageId: string | null;
  readonly traceId: string | null;
  readonly chatId: string | null;
  /** Conversations of that chat, and turns of that message. */
  readonly conversationRefs: readonly string[];
  readonly turnIds: readonly string[];
  readonly condition: Condition | null;
  /** The only agents whose records are returned; null: all. */
  readonly agents: readonly string[] | null;
  readonly includeSynthetic: boolean;
  readonly limit: number;
}

/** Returns the records that match everything, newest first. */
export const searchTraces = operation('diagnosis.searchTraces', async (tx, filter: TraceFilter): Promise<FoundRow[]> =>
  tx.build<FoundRow>((db, sql, dialect) => {
    const { condition, agents, conversationRefs, turnIds } = filter;
    let found = db.selectFrom('traceRecord').select(columns).where('startedAtMs', '>=', filter.fromMs);
    if (filter.traceId !== null) found = found.where('traceId', '=', filter.traceId);
    if (filter.messageId !== null) {
      const own = ofMessage(sql, filter.messageId);
      found = found.where((where) =>
        turnIds.length === 0 ? own : where.or([own, where('id', 'in', [...turnIds]), where('parentId', 'in', [...turnIds])]),
      );
    }
    if (filter.chatId !== null) {
      const { chatId } = filter;
      found = found.where((where) => {
        const named = where('channelId', '=', chatId);
        return conversationRefs.length === 0 ? named : where.or([named, where('conversationRef', 'in', [...conversationRefs])]);
      });
    }
    if (agents !== null) found = found.where('agentId', 'in', agents);
    if (!filter.includeSynthetic) found = found.where('synthetic', '=', 0);
    if (condition !== null) found = found.where((where) => whereSql(where, sql, dialect, condition));
    return found.orderBy('startedAtMs', 'desc').orderBy('seq', 'desc').limit(filter.limit);
  }),
);
