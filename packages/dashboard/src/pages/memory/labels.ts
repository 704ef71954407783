import { t } from '../../language.ts';
import { plural } from '../../data/format.ts';
import type { Tone } from '../../ui/parts.tsx';

export const trustTone: Readonly<Record<'system' | 'learned' | 'external', Tone>> = { system: 'good', learned: 'neutral', external: 'warn' };

/** Returns the label of a derived memory with the number of its sources. */
export function derivedText(proofCount: number): string {
  return t('derived from {sources}', { sources: plural(proofCount, 'source') });
}
