import { plural } from '../../data/format.ts';
import type { Tone } from '../../ui/parts.tsx';

export const trustTone: Readonly<Record<'system' | 'learned' | 'external', Tone>> = { system: 'good', learned: 'neutral', external: 'warn' };

/** A memory that was made from others says from how many. */
export function derivedWords(proofCount: number): string {
  return `derived from ${plural(proofCount, 'source')}`;
}
