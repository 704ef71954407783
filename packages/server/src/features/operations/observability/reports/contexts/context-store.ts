import type { TraceRecord, TraceStep } from '@gatehouse/contract';
import { parseJson } from '../../../../../kernel/json.ts';
import { operation } from '../../../../../kernel/db/operation.ts';

/** Records that one call reads at most, most of which have one context. */
const maxRead = 2_000;
const pageRows = 100;

export interface ContextFilter {
  readonly agentIds: readonly string[] | null;
  readonly includeSynthetic: boolean;
  readonly limit: number;
}

/** The preparation of a context, with the model call that it was for. */
export interface FoundContext {
  readonly recordId: string;
  readonly traceId: string;
  readonly agentId: string | null;
  readonly sessionKey: string | null;
  readonly conversationRef: string | null;
  readonly startedAtMs: number;
  readonly step: Pick<TraceStep, 'at' | 'ms' | 'facts'>;
  readonly tokens: TraceStep['tokens'];
}

/** Returns the newest contexts of turns. Steps are read here, in the storage thread, because a record is kilobytes long. */
export const listContexts = operation('obs.contexts', async (tx, filter: ContextFilter): Promise<FoundContext[]> => {
  const found: FoundContext[] = [];
  let before: number | undefined;
  for (let read = 0; read < maxRead && found.length < filter.limit; read += pageRows) {
    const rows = await tx.build<Row>((db) => {
      let page = db.selectFrom('traceRecord').where('kind', '=', 'turn');
      if (before !== undefined) page = page.where('seq', '<', before);
      if (filter.agentIds !== null) page = page.where('agentId', 'in', filter.agentIds);
      if (!filter.includeSynthetic) page = page.where('synthetic', '=', 0);
      return page
        .select(['seq', 'id', 'traceId', 'agentId', 'sessionKey', 'conversationRef', 'startedAtMs', 'detailJson'])
        .orderBy('seq', 'desc')
        .limit(pageRows);
    });
    for (const row of rows) found.push(...contextsOf(row));
    before = rows.at(-1)?.seq;
    if (rows.length < pageRows) break;
  }
  return found.slice(0, filter.limit);
});

interface Row extends Omit<FoundContext, 'recordId' | 'step' | 'tokens'> {
  readonly seq: number;
  readonly id: string;
  readonly detailJson: string;
}

/** Newest first. */
function contextsOf({ seq: _seq, id, detailJson, ...of }: Row): FoundContext[] {
  // Only the recorder writes this column.
  const { steps } = parseJson(detailJson) as Pick<TraceRecord, 'steps'>;
  return steps
    .flatMap((step, index): FoundContext[] => {
      if (step.kind !== 'context') return [];
      const next = steps.slice(index + 1).find(({ kind }) => kind === 'context' || kind === 'model');
      const { at, ms, facts } = step;
      return [{ ...of, recordId: id, step: { at, ms, facts }, tokens: next?.kind === 'model' ? next.tokens : undefined }];
    })
    .toReversed();
}

export interface TreeRow {
  readonly agentId: string;
  readonly sessionKey: string;
  readonly conversationRef: string;
  readonly leafSummaries: number;
  readonly condensedSummaries: number;
  readonly totalSummaries: number;
  readonly maxDepth: number;
  readonly summaryTokens: number;
  readonly timestamp: number;
}

/** Counts the summaries of the conversations that were used last. Stopgaps are not summaries. */
export const listTrees = operation(
  'obs.contextTrees',
  async (tx, { agentIds, limit }: { readonly agentIds: readonly string[] | null; readonly limit: number }): Promise<TreeRow[]> =>
    tx.build<TreeRow>((db, sql) => {
      let used = db
        .selectFrom('conversation')
        .select('id')
        .where(({ exists, selectFrom }) =>
          exists(selectFrom('summary').select('summary.id').whereRef('summary.conversationId', '=', 'conversation.id').where('stopgap', '=', 0)),
        );
      if (agentIds !== null) used = used.where('agentId', 'in', agentIds);
      return db
        .selectFrom('conversation')
        .innerJoin('summary', 'summary.conversationId', 'conversation.id')
        .where('stopgap', '=', 0)
        .where('conversation.id', 'in', used.orderBy('updatedAtMs', 'desc').orderBy('id', 'desc').limit(limit))
        .select(['agentId', 'sessionKey', 'ref as conversationRef'])
        .select([
          sql<number>`count(CASE WHEN depth = 0 THEN 1 END)`.as('leafSummaries'),
          sql<number>`count(CASE WHEN depth > 0 THEN 1 END)`.as('condensedSummaries'),
          sql<number>`count(*)`.as('totalSummaries'),
          sql<number>`max(depth)`.as('maxDepth'),
          sql<number>`CAST(sum(CASE WHEN parent_id IS NULL THEN token_count ELSE 0 END) AS BIGINT)`.as('summaryTokens'),
          sql<number>`max(summary.created_at_ms)`.as('timestamp'),
        ])
        .groupBy(['conversation.id', 'agentId', 'sessionKey', 'ref', 'updatedAtMs'])
        .orderBy('updatedAtMs', 'desc')
        .orderBy('conversation.id', 'desc');
    }),
);

export const contextReportOperations = [listContexts, listTrees];
