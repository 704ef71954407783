import type { LeftInLane } from './features/turns/durable.ts';
import { operation, query } from './kernel/db/operation.ts';

type LeftRow = Omit<LeftInLane, 'target'> & LeftInLane['target'] & { readonly approvalId: string };

const waiting = query<Record<string, never>, LeftRow>(({ db, sql }) =>
  db
    .selectFrom('work_item as w')
    .innerJoin('durable_turn as d', 'd.work_id', 'w.id')
    .innerJoin('turn as t', 't.id', 'd.turn_id')
    .select([
      'w.id as workId',
      'w.fence',
      't.conversation_ref as ref',
      't.session_key as sessionKey',
      't.agent_id as agentId',
      't.principal_id as principalId',
      sql<string>`json_extract(w.waiting_json, '$.subject')`.as('approvalId'),
    ])
    .where(sql<boolean>`w.state = 'accepted'`)
    .where('w.waiting_json', 'is not', null)
    .where(sql<boolean>`json_extract(w.waiting_json, '$.kind') = 'approval'`)
    .where(sql<boolean>`json_extract(w.waiting_json, '$.endedBy') is null`),
);

/** Turns that an earlier run of the daemon left waiting for an approval. */
export const readLeftTurns = operation('turns.left', async (tx): Promise<(LeftInLane & { readonly approvalId: string })[]> => {
  const rows = await tx.all(waiting, {});
  return rows.map(({ workId, fence, approvalId, ...target }) => ({ workId, fence, approvalId, target }));
});
