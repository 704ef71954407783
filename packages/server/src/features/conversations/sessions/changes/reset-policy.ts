import type { SessionReset } from '@gatehouse/contract';
import { chatKindOf } from '../conversation.ts';

export interface ResetRule {
  readonly mode: SessionReset['mode'];
  readonly hour: number;
  readonly timeZone: string;
  readonly idleMinutes: number;
}

/** The rule for one kind of chat: its override over the common one; without a zone it is the machine's own. */
export function resetRuleOf(reset: SessionReset, sessionKey: string): ResetRule {
  const override = reset[chatKindOf(sessionKey)];
  return {
    mode: override?.mode ?? reset.mode,
    hour: override?.hour ?? reset.hour,
    timeZone: override?.timeZone ?? reset.timeZone ?? Temporal.Now.timeZoneId(),
    idleMinutes: override?.idleMinutes ?? reset.idleMinutes,
  };
}

/** Why a conversation whose last message came at `lastMs` begins anew at `nowMs`; undefined when it goes on. */
export function dueReset(rule: ResetRule, lastMs: number, nowMs: number): 'daily' | 'idle' | undefined {
  if ((rule.mode === 'daily' || rule.mode === 'both') && lastMs < latestDailyReset(rule, nowMs)) return 'daily';
  if ((rule.mode === 'idle' || rule.mode === 'both') && nowMs - lastMs >= rule.idleMinutes * 60_000) return 'idle';
  return undefined;
}

/**
 * When the last day began by the rule. An hour that the zone skips begins where the gap ends; of an hour that it has
 * twice the first counts.
 */
function latestDailyReset({ hour, timeZone }: ResetRule, nowMs: number): number {
  let day = Temporal.Instant.fromEpochMilliseconds(nowMs).toZonedDateTimeISO(timeZone).toPlainDate();
  const beginMs = () => day.toPlainDateTime({ hour }).toZonedDateTime(timeZone, { disambiguation: 'compatible' }).epochMilliseconds;
  // Where a zone skipped a whole day, that of yesterday can lie in the future as well.
  while (beginMs() > nowMs) day = day.subtract({ days: 1 });
  return beginMs();
}
