import type { Case, Cause, Rule } from './case.ts';
import { endRules } from './end-rules.ts';
import { otherRules } from './other-rules.ts';
import { toolRules } from './tool-rules.ts';

/** All rules; the first that applies names the root cause. */
export const rules: readonly Rule[] = [...toolRules, ...endRules, ...otherRules];

export function findCause(about: Case): Cause | undefined {
  for (const { code, find } of rules) {
    const match = find(about);
    if (match !== undefined) return { ...match, code };
  }
  return undefined;
}
