import { createHmac } from 'node:crypto';
import { type ActiveHours, nextActive } from './active-hours.ts';

/** Where in the interval the beats of an agent lie: the same for each start, different from agent to agent, so that they do not all beat at once. */
export function phaseOf(seed: Uint8Array, agentId: string, intervalMs: number): number {
  return createHmac('sha256', seed).update(agentId).digest().readUIntBE(0, 6) % intervalMs;
}

/** The first due time after `afterMs`: a whole number of intervals from the phase, within the active hours. */
export function nextDue(afterMs: number, intervalMs: number, phaseMs: number, hours: ActiveHours | undefined): number {
  const slotFrom = (ms: number) => Math.ceil((ms - phaseMs) / intervalMs) * intervalMs + phaseMs;
  const slot = slotFrom(afterMs + 1);
  if (hours === undefined) return slot;
  const open = nextActive(hours, slot);
  if (open === slot) return slot;
  const inside = slotFrom(open);
  // A long interval may step over short hours again and again: then the beat comes as they begin.
  return nextActive(hours, inside) === inside ? inside : open;
}
