import { deliverMessage } from './deliver-message.ts';
import { settleWithoutTurn } from './end-interrupted-turn.ts';
import type { WorkClaim, WorkEnd } from '../features/unattended/durable/api.ts';
import { findWork } from '../features/unattended/durable/store.ts';
import type { Finish, Finished } from '../features/unattended/cron/occurrences/finish.ts';
import {
  endOccurrence,
  holdsOccurrence,
  openOccurrences,
  type OccurrenceRow,
  passOver,
} from '../features/unattended/cron/occurrences/occurrence-store.ts';
import { cronWork } from '../features/unattended/cron/occurrences/work-kind.ts';
import { enqueueSystemEvent } from '../features/unattended/heartbeat/store.ts';
import { addMessages } from '../features/conversations/sessions/store.ts';
import { operation } from '../kernel/db/operation.ts';

const workEnds: Readonly<Record<Finish['end']['status'], WorkEnd>> = {
  dispatched: 'done',
  completed: 'done',
  skipped: 'done',
  failed: 'failed',
  aborted: 'aborted',
  unknown: 'unknown',
};

/**
 * Ends an occurrence with everything that it leaves behind, in one commit: its record, its job, its work unless that ends with its
 * turn, and the message to its recipient. Undefined when another process holds the claim by now, or it had ended before: then nothing is done.
 */
export const finishOccurrence = operation(
  'cron.finish',
  async (
    tx,
    { claim, end: planned, dependency, defaultMaxErrors, inbox, conversation, systemEvent, late }: Finish,
  ): Promise<Finished | undefined> => {
    const settled = claim && (await settleWithoutTurn(tx, settlementOf(claim, planned)));
    if (settled === 'lost') return undefined;
    const end = settled === 'unknown' ? { ...planned, status: 'unknown' as const, errorKind: 'owner_lost' } : planned;
    if (!(await holdsOccurrence(tx, end.executionId))) return undefined;
    const delivery = inbox === undefined ? undefined : await deliverMessage(tx, inbox);
    const deliveryStatus = delivery === 'mismatch' ? 'rejected' : end.deliveryStatus;
    const created = conversation !== undefined && delivery === 'accepted' && (await addMessages(tx, conversation)).created;
    if (systemEvent !== undefined) await enqueueSystemEvent(tx, systemEvent);
    const ended = await endOccurrence(tx, { ...end, deliveryStatus, dependency, defaultMaxErrors });
    if (late !== undefined) await passOver(tx, end.executionId, late);
    return ended && { ...ended, delivered: delivery === 'accepted', created };
  },
);

const settlementOf = (claim: WorkClaim, { status, errorKind, atMs }: Finish['end']) => ({ ...claim, state: workEnds[status], errorKind, atMs });

/** Returns occurrences of dead boots that have no end although their work is over. */
export const readUnfinished = operation('cron.unfinished', async (tx, { limit }: { readonly limit: number }): Promise<OccurrenceRow[]> => {
  const found: OccurrenceRow[] = [];
  for (const row of await openOccurrences(tx, limit)) {
    const work = await findWork(tx, { kind: cronWork, key: row.executionId });
    if (work === undefined || (work.state !== 'accepted' && work.state !== 'running')) found.push(row);
  }
  return found;
});
