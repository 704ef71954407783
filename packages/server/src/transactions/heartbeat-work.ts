import { deliverMessage } from './deliver-message.ts';
import { settleWithoutTurn } from './end-interrupted-turn.ts';
import { acceptWork, findWork } from '../features/unattended/durable/store.ts';
import { beatKind } from '../features/unattended/heartbeat/api.ts';
import type { BeatBeginning, BeatEnd, BeatEnding, LostBeat } from '../features/unattended/heartbeat/beat/operations.ts';
import { closeBeat, openBeat, openBeats, recordDelivered, saveState, takeSlot } from '../features/unattended/heartbeat/store.ts';
import { operation } from '../kernel/db/operation.ts';

/** Starts a beat: stores its work, takes its events and marks its time as used; false when another process has begun it. */
export const beginBeat = operation('heartbeat.begin', async (tx, { beat, state, isPlanned, lastEventId, work }: BeatBeginning): Promise<boolean> => {
  if (isPlanned && !(await takeSlot(tx, state))) return false;
  if (!(await openBeat(tx, { ...beat, lastEventId }))) return false;
  if (!isPlanned) await saveState(tx, state);
  await acceptWork(tx, work);
  return true;
});

const before: BeatEnd = { closed: false, delivered: [] };

/** Stores the end of a beat, once: a repeat changes nothing. */
export const endBeat = operation(
  'heartbeat.end',
  async (tx, { workId, agentId, handled, state, messages, once, settle, atMs, ageNowMs }: BeatEnding): Promise<BeatEnd> => {
    const ended = settle && (await settleWithoutTurn(tx, { ...settle.claim, state: 'failed', errorKind: settle.errorKind, atMs }));
    if (ended === 'lost') return before;
    // Events that may have been acted on are not delivered again.
    if (!(await closeBeat(tx, { workId, agentId, handled: handled || ended === 'unknown' }))) return before;
    if (state !== undefined) await saveState(tx, state);
    const delivered: string[] = [];
    for (const message of messages) {
      const isNew = !once || message.level === 'alert' || (await recordDelivered(tx, { agentId, digest: message.digest, atMs, ageNowMs }));
      if (isNew && (await deliverMessage(tx, message)) === 'accepted') delivered.push(message.id);
    }
    return { closed: true, delivered };
  },
);

/** Returns the beats of dead boots whose end was not stored, with the status of their work. */
export const recoverBeats = operation('heartbeat.recover', async (tx): Promise<LostBeat[]> => {
  const found: LostBeat[] = [];
  for (const beat of await openBeats(tx)) found.push({ beat, work: await findWork(tx, { kind: beatKind, key: beat.workId }) });
  return found;
});
