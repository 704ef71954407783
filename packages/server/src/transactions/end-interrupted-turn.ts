import { deliverMessage } from './deliver-message.ts';
import { type Settlement, settleWork } from '../features/unattended/durable/store.ts';
import type { InboxMessage } from '../features/unattended/inbox/api.ts';
import { holdsConversation } from '../features/conversations/sessions/store.ts';
import { dropLedger, findDurableTurn } from '../features/conversations/turns/durable/ledger-store.ts';
import { endOf } from '../features/conversations/turns/durable/interrupted-turn.ts';
import { endOpenTurn } from '../features/conversations/turns/store.ts';
import { keepDone } from './keep-done.ts';
import { appendAudit } from '../kernel/db/audit.ts';
import { operation, type Tx } from '../kernel/db/operation.ts';
import { derivedId } from '../kernel/ids.ts';

/**
 * Ends a work item without its turn, because the agent is gone or may not run, together with what an earlier run left of
 * that turn. `unknown`: the turn was interrupted inside a tool of class `once`, so the work is unknown too, whatever its end was to be.
 */
export async function settleWithoutTurn(tx: Tx, ending: Settlement): Promise<'settled' | 'unknown' | 'lost'> {
  const { id: workId, atMs } = ending;
  const left = await findDurableTurn(tx, workId);
  const toolName = left && endOf(left)?.toolName;
  const isUnknown = toolName !== undefined;
  if (!(await settleWork(tx, isUnknown ? { ...ending, state: 'unknown', errorKind: 'unknown' } : ending))) return 'lost';
  if (left === undefined) return 'settled';
  const { turnId, traceId, question } = left;
  // Done without its turn: its conversation, or the inbox, got it in another way.
  const isKept = question !== null && (ending.state !== 'done' || left.steps.length > 0);
  // A deleted conversation must not come back.
  if (isKept && ending.errorKind !== 'deleted' && (await holdsConversation(tx, left.target.ref)))
    await keepDone(tx, { ...left, question }, { errorKind: ending.errorKind ?? 'stopped', atMs });
  await endOpenTurn(tx, { id: turnId, state: isUnknown ? 'unknown' : 'aborted', atMs });
  await dropLedger(tx, turnId);
  if (!isUnknown) return 'settled';
  await appendAudit(tx, {
    id: derivedId('au', 'turn.unknown', turnId),
    atMs,
    principalId: 'system:durable',
    action: 'turn.unknown',
    classification: 'mutate',
    outcome: 'failure',
    target: turnId,
    metadata: { workId, toolName },
    traceId,
  });
  return 'unknown';
}

/** Ends a work item without its turn, with a message about it; false when another process holds the claim, or the message was delivered before. */
export const endWorkWithMessage = operation(
  'durable.endWithMessage',
  async (tx, { inbox, ...ending }: Settlement & { readonly inbox: InboxMessage }): Promise<boolean> =>
    (await settleWithoutTurn(tx, ending)) !== 'lost' && (await deliverMessage(tx, inbox)) === 'accepted',
);

/** Ends work that no feature settled in its own operation. */
export const endWork = operation('durable.end', async (tx, ending: Settlement): Promise<boolean> => (await settleWithoutTurn(tx, ending)) !== 'lost');
