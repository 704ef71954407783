import type { SessionReset } from '@gatehouse/contract';
import { chatKindOf } from '../conversation.ts';

export interface ResetRule {
  readonly mode: SessionReset['mode'];
  readonly hour: number;
  readonly timeZone: string;
  readonly idleMinutes: number;
}

/** Returns the rule for one kind of chat, its override or the common one; the time zone defaults to the machine's. */
export function resetRuleOf(reset: SessionReset, sessionKey: string): ResetRule {
  const override = reset[chatKindOf(sessionKey)];
  return {
    mode: override?.mode ?? reset.mode,
    hour: override?.hour ?? reset.hour,
    timeZone: override?.timeZone ?? reset.timeZone ?? Temporal.Now.timeZoneId(),
    idleMinutes: override?.idleMinutes ?? reset.idleMinutes,
  };
}

/** Returns why a conversation with the last message at `lastMs` is reset at `nowMs`; undefined when it continues. */
export function dueReset(rule: ResetRule, lastMs: number, nowMs: number): 'daily' | 'idle' | undefined {
  if ((rule.mode === 'daily' || rule.mode === 'both') && lastMs < latestDailyReset(rule, nowMs)) return 'daily';
  if ((rule.mode === 'idle' || rule.mode === 'both') && nowMs - lastMs >= rule.idleMinutes * 60_000) return 'idle';
  return undefined;
}

/**
 * Returns when the last day started by the rule. A skipped hour starts at the end of the gap; of a repeated hour the
 * first counts.
 */
function latestDailyReset({ hour, timeZone }: ResetRule, nowMs: number): number {
  let day = Temporal.Instant.fromEpochMilliseconds(nowMs).toZonedDateTimeISO(timeZone).toPlainDate();
  const beginMs = () => day.toPlainDateTime({ hour }).toZonedDateTime(timeZone, { disambiguation: 'compatible' }).epochMilliseconds;
  // When a zone skips a whole day, yesterday's start can also be in the future.
  while (beginMs() > nowMs) day = day.subtract({ days: 1 });
  return beginMs();
}
