import type { LeftInLane } from './features/turns/durable.ts';
import { parseJson } from './kernel/json.ts';
import { operation, query } from './kernel/db/operation.ts';

type LeftRow = Omit<LeftInLane, 'target' | 'rootRunId' | 'runId'> & LeftInLane['target'] & { readonly turnJson: string | null };

const waiting = query<Record<string, never>, LeftRow>(({ db, sql }) =>
  db
    .selectFrom('work_item as w')
    .innerJoin('durable_turn as d', 'd.work_id', 'w.id')
    .innerJoin('turn as t', 't.id', 'd.turn_id')
    .leftJoin('approval as a', (join) => join.on(sql<boolean>`a.id = json_extract(w.waiting_json, '$.subject')`))
    .select([
      'w.id as workId',
      'w.fence',
      't.conversation_ref as ref',
      't.session_key as sessionKey',
      't.agent_id as agentId',
      't.principal_id as principalId',
      sql<string>`json_extract(w.waiting_json, '$.subject')`.as('approvalId'),
      'a.turn_json as turnJson',
    ])
    .where(sql<boolean>`w.state = 'accepted'`)
    .where('w.waiting_json', 'is not', null)
    .where(sql<boolean>`json_extract(w.waiting_json, '$.kind') = 'approval'`)
    .where(sql<boolean>`json_extract(w.waiting_json, '$.endedBy') is null`),
);

/** Turns that an earlier run of the daemon left waiting for an approval. */
export const readLeftTurns = operation('turns.left', async (tx): Promise<LeftInLane[]> => {
  const rows = await tx.all(waiting, {});
  return rows.map(({ workId, fence, approvalId, turnJson, ...target }) => {
    // Written by `createAsk` alone.
    const { rootRunId = null, runId = null } = turnJson === null ? {} : (parseJson(turnJson) as { rootRunId?: string; runId?: string });
    return { workId, fence, approvalId, target, rootRunId, runId };
  });
});

const dueBehind = query<{ atMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('work_item')
    .set({ not_before_ms: p('atMs') })
    .where(sql<boolean>`state = 'accepted'`)
    .where('waiting_json', 'is not', null)
    .where(sql<boolean>`json_extract(waiting_json, '$.kind') = 'conversation'`),
);

/** At a start: work that waited behind a conversation looks whether it still must. */
export const resumeBehind = operation('turns.resumeBehind', async (tx, input: { readonly atMs: number }): Promise<void> => {
  await tx.run(dueBehind, input);
});
