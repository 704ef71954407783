import { AppError } from '../../../../kernel/app-error.ts';
import { query, type Tx } from '../../../../kernel/db/operation.ts';

const anyIntent = query<{ agentId: string }, { operationId: string }>(({ db, p }) =>
  db.selectFrom('cron_intent').select('operation_id as operationId').where('agent_id', '=', p('agentId')),
);

/** Whether a reset is under way: what would be written now it might delete without having archived it. */
export async function isBeingReset(tx: Tx, agentId: string): Promise<boolean> {
  return (await tx.get(anyIntent, { agentId })) !== undefined;
}

/** Part of everything that is acknowledged to a caller. */
export async function refuseDuringReset(tx: Tx, agentId: string): Promise<void> {
  if (await isBeingReset(tx, agentId)) throw new AppError('precondition_failed', `The schedule of agent ${agentId} is being emptied`);
}
