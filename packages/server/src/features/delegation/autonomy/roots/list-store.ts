import type { AutonomyProfile, ResultInput, TurnOrigin } from '@gatehouse/contract';
import { jsonSql } from '../../../../kernel/db/json-sql.ts';
import { type Dialect, operation, type QueryTools, type Tx } from '../../../../kernel/db/operation.ts';

type SqlTag = QueryTools<never>['sql'];
type RootState = ResultInput<'run.list'>['runs'][number]['state'];

export interface RootRow {
  readonly rootRunId: string;
  readonly agentId: string;
  readonly origin: TurnOrigin;
  readonly conversationRef: string | null;
  readonly profile: AutonomyProfile;
  readonly evicted: number;
  readonly state: RootState;
  readonly startedAt: number;
  readonly heartbeatAt: number;
  readonly endedAt: number | null;
  readonly openRuns: number;
  readonly completedRuns: number;
  readonly failedRuns: number;
  readonly graphs: number;
  readonly tokens: number;
  readonly nano: number;
  readonly unpriced: number;
  readonly cause: string | null;
}

interface Page {
  /** Null means all. */
  readonly principalId: string | null;
  readonly agentIds: readonly string[] | null;
  readonly state: RootState | null;
  /** Roots whose own turn runs or waits: active again, unless they were revoked. */
  readonly resuming: readonly string[];
  readonly offset: number;
  readonly limit: number;
}

/** Returns which of these roots have rows. */
export const knownRoots = operation('autonomy.knownRoots', async (tx: Tx, { ids }: { readonly ids: readonly string[] }): Promise<string[]> => {
  const rows = await tx.build<{ id: string }>((db) => db.selectFrom('rootRun').select('id').where('id', 'in', ids));
  return rows.map(({ id }) => id);
});

function currentState(sql: SqlTag, dialect: Dialect, resuming: readonly string[]) {
  // Only the column itself is indexed.
  if (resuming.length === 0) return sql<RootState>`state`;
  const ids = jsonSql(sql, dialect).texts(sql<string>`${JSON.stringify(resuming)}`);
  return sql<RootState>`case when state not in ('active', 'revoked') and id in ${ids} then 'active' else state end`;
}

/** Lists roots, newest first. */
export const listRoots = operation(
  'autonomy.listRoots',
  async (tx: Tx, { principalId, agentIds, state, resuming, offset, limit }: Page): Promise<{ rows: RootRow[]; total: number }> => {
    if (agentIds?.length === 0) return { rows: [], total: 0 };
    const rows = await tx.build<RootRow>((db, sql, dialect) => {
      const current = currentState(sql, dialect, resuming);
      let from = db.selectFrom('rootRun');
      if (principalId !== null) from = from.where('principalId', '=', principalId);
      if (agentIds !== null) from = from.where('agentId', 'in', agentIds);
      if (state !== null) from = from.where(current, '=', state);
      return from
        .select([
          'id as rootRunId',
          'agentId',
          'origin',
          'conversationRef',
          'profile',
          'evicted',
          current.as('state'),
          'startedAtMs as startedAt',
          'heartbeatAtMs as heartbeatAt',
          'endedAtMs as endedAt',
          'openRuns',
          'completedRuns',
          'failedRuns',
          'graphs',
          sql<number>`case when spent_tokens > ended_tokens then spent_tokens else ended_tokens end`.as('tokens'),
          sql<number>`case when spent_nano > ended_nano then spent_nano else ended_nano end`.as('nano'),
          'unpriced',
          'cause',
        ])
        .orderBy('startedAtMs', 'desc')
        .orderBy('id', 'desc')
        .limit(limit)
        .offset(offset);
    });
    const [count] = await tx.build<{ total: number }>((db, sql, dialect) => {
      let from = db.selectFrom('rootRun');
      if (principalId !== null) from = from.where('principalId', '=', principalId);
      if (agentIds !== null) from = from.where('agentId', 'in', agentIds);
      if (state !== null) from = from.where(currentState(sql, dialect, resuming), '=', state);
      return from.select(sql<number>`count(*)`.as('total'));
    });
    return { rows, total: count?.total ?? 0 };
  },
);

export const rootListOperations = [knownRoots, listRoots];
