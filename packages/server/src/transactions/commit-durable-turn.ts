import { bookCalls } from './book-calls.ts';
import { callAlongside } from './commit-turn.ts';
import type { WorkClaim } from '../features/unattended/durable/api.ts';
import { holdsWork, isGivenUp, retryWork, settleWork, waitWork } from '../features/unattended/durable/store.ts';
import { addMessages, growUsage, openConversation } from '../features/conversations/sessions/store.ts';
import { takeSteers } from '../features/delegation/subagents/requests/steer-store.ts';
import type { DurableCommit, DurableCommitted, DurableOpening } from '../features/conversations/turns/durable/durable.ts';
import type { Checkpoint, DurableOf, ReserveInput } from '../features/conversations/turns/durable/ledger.ts';
import {
  addDurableTurn,
  closeIntent,
  countResume,
  dropLedger,
  findDurableTurn,
  keepQuestion,
  keepRefused,
  keepStep,
  keepTotals,
  type InterruptedTurn,
  linkCalls,
  markFirstCall,
  openIntent,
  taintTurn,
} from '../features/conversations/turns/durable/ledger-store.ts';
import { adoptTurn, type ModelCallRow, recordTurn, setReserve } from '../features/conversations/turns/store.ts';
import { appendAudit } from '../kernel/db/audit.ts';
import { operation, type Tx } from '../kernel/db/operation.ts';

/** The writes of one turn keep their order; the acceptance of its work, which may be under way, has no key and stays before them. */
const ofWork = { orderKey: ({ claim }: { readonly claim: WorkClaim }) => claim.id };

/** Returns what an earlier run left of the turn, or a new row for it; undefined when another process holds the claim. */
export const openDurableTurn = operation(
  'turns.openDurable',
  async (tx, { claim, turn }: DurableOpening): Promise<{ readonly left: InterruptedTurn | undefined } | undefined> => {
    if (!(await holdsWork(tx, claim))) return undefined;
    const left = await findDurableTurn(tx, claim.id);
    if (left === undefined) {
      await recordTurn(tx, turn, [], null);
      await addDurableTurn(tx, { workId: claim.id, turnId: turn.id });
      return { left };
    }
    if (await isGivenUp(tx, claim.id)) return undefined;
    await countResume(tx, { workId: claim.id, change: 1 });
    await adoptTurn(tx, { id: left.turnId, bootId: turn.bootId });
    return { left: { ...left, resumes: left.resumes + 1 } };
  },
  ofWork,
);

/** Stores a turn's progress since the last checkpoint: a step, what is about to be done once, its result, and the calls that were made. */
export const checkpointTurn = operation('turns.checkpoint', checkpoint, ofWork);

async function checkpoint(tx: Tx, input: Checkpoint): Promise<boolean> {
  const { claim, turnId, totals, calls, step, intent, closed, parked, wait, steers, tainted, refused } = input;
  const isHeld = await holdsWork(tx, claim);
  await book(tx, input, calls, isHeld);
  if (!isHeld) return false;
  await keepTotals(tx, turnId, totals);
  if (step !== undefined) await keepStep(tx, turnId, step);
  if (intent !== undefined) await openIntent(tx, { ...intent, turnId });
  if (closed !== undefined) await closeIntent(tx, closed);
  if (steers !== undefined) await takeSteers(tx, steers);
  if (tainted === true) await taintTurn(tx, turnId);
  if (refused !== undefined && refused > 0) await keepRefused(tx, { turnId, refused });
  if (parked === true) await countResume(tx, { workId: claim.id, change: -1 });
  if (wait !== undefined) {
    await waitWork(tx, { ...claim, wait: wait.for, atMs: wait.atMs });
    // A deleted conversation must not come back.
    if (wait.conversation !== undefined && !(await isGivenUp(tx, claim.id))) {
      await openConversation(tx, { ...wait.conversation, atMs: wait.atMs });
      await keepQuestion(tx, { workId: claim.id, question: wait.conversation.question });
    }
  }
  return true;
}

/** Under a cap in money: reserves what the next call may cost at most, in case the process dies during it. */
export const reserveForDurable = operation(
  'turns.reserveDurable',
  async (tx, { claim, id, reservedNano, model }: ReserveInput): Promise<boolean> => {
    if (!(await holdsWork(tx, claim))) return false;
    await setReserve(tx, { id, reservedNano, model });
    return true;
  },
  ofWork,
);

/** Commits the end of a durable turn with the end of its work, all or none; for a stale owner only its calls are charged. */
export const commitDurableTurn = operation('turns.commitDurable', commitDurable, { ...ofWork, isolation: 'read committed' });

async function commitDurable(tx: Tx, input: DurableCommit): Promise<DurableCommitted> {
  const { claim, turn, calls, conversation, settlement, audit, alongside } = input;
  const { id, owner, fence } = claim;
  const settled =
    settlement.state === 'accepted'
      ? await retryWork(tx, { id, owner, fence, errorKind: settlement.errorKind, notBeforeMs: settlement.notBeforeMs })
      : await settleWork(tx, { id, owner, fence, ...settlement, atMs: turn.endedAtMs ?? 0 });
  if (!settled || conversation === null) await book(tx, input, calls, settled);
  if (!settled) return { settled, created: false, outputs: [] };
  await recordTurn(tx, turn, conversation === null ? [] : calls, turn.conversationRef);
  let created = false;
  if (conversation !== null) {
    ({ created } = await addMessages(tx, conversation));
    const sums = await linkCalls(tx, { turnId: turn.id, conversationRef: turn.conversationRef });
    await growUsage(tx, { ref: turn.conversationRef, ...sums });
  }
  await dropLedger(tx, turn.id);
  const outputs = await callAlongside(tx, alongside);
  if (audit !== undefined) await appendAudit(tx, audit);
  return { settled, created, outputs };
}

/** `isHeld`: the end of the turn will add its calls to root and run. */
async function book(
  tx: Tx,
  { turnId, agentId, principalId, conversationRef, part }: DurableOf,
  calls: readonly ModelCallRow[],
  isHeld: boolean,
): Promise<void> {
  if (calls.length === 0) return;
  await markFirstCall(tx, turnId);
  await bookCalls(tx, { id: turnId, agentId, principalId, conversationRef, ...(!isHeld && part) }, calls);
}
