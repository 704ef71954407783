import { AppError } from '../../../../kernel/app-error.ts';
import { query, type Tx } from '../../../../kernel/db/operation.ts';

const anyIntent = query<{ agentId: string }, { operationId: string }>(({ db, p }) =>
  db.selectFrom('cronIntent').select('operationId').where('agentId', '=', p('agentId')),
);

/**
 * Returns whether a reset is in progress, which might delete new rows without archiving them. The answer stays true until the commit because
 * these writes are SERIALIZABLE, and a reset reads what they add.
 */
export async function isBeingReset(tx: Tx, agentId: string): Promise<boolean> {
  return (await tx.get(anyIntent, { agentId })) !== undefined;
}

/** Rejects acknowledged writes while a reset is in progress. */
export async function refuseDuringReset(tx: Tx, agentId: string): Promise<void> {
  if (await isBeingReset(tx, agentId)) throw new AppError('precondition_failed', `The schedule of agent ${agentId} is being reset`);
}
