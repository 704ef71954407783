import { t } from '../language.ts';
import type { AnswerEffort } from '@gatehouse/contract';

/** What efforts are shown as. */
export const effortNames: Readonly<Record<AnswerEffort, string>> = { low: t('Low effort'), medium: t('Medium effort'), high: t('High effort') };
