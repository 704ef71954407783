import type { AnswerEffort } from '@gatehouse/contract';

/** What efforts are shown as. */
export const effortNames: Readonly<Record<AnswerEffort, string>> = { low: 'Low effort', medium: 'Medium effort', high: 'High effort' };
