import { createHmac } from 'node:crypto';
import { type ActiveHours, nextActive } from './active-hours.ts';

/** Returns the offset of an agent's beats in the interval, stable across starts and different per agent to spread the beats. */
export function phaseOf(seed: Uint8Array, agentId: string, intervalMs: number): number {
  return createHmac('sha256', seed).update(agentId).digest().readUIntBE(0, 6) % intervalMs;
}

/** Returns the first due time after `afterMs`, a whole number of intervals from the phase, within the active hours. */
export function nextDue(afterMs: number, intervalMs: number, phaseMs: number, hours: ActiveHours | undefined): number {
  const slotFrom = (ms: number) => Math.ceil((ms - phaseMs) / intervalMs) * intervalMs + phaseMs;
  const slot = slotFrom(afterMs + 1);
  if (hours === undefined) return slot;
  const open = nextActive(hours, slot);
  if (open === slot) return slot;
  const inside = slotFrom(open);
  // A long interval may skip short hours repeatedly, so the beat runs at their start.
  return nextActive(hours, inside) === inside ? inside : open;
}
