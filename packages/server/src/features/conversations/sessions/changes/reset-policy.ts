import type { SessionReset } from '@gatehouse/contract';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { ConversationTarget } from '../api.ts';
import { chatKindOf } from '../conversation.ts';
import { type ConversationRow, findConversation } from '../store.ts';

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

export function hasResetPolicy({ mode, dm, group, thread }: SessionReset): boolean {
  return mode !== 'none' || dm !== undefined || group !== undefined || thread !== undefined;
}

/** Returns the stored conversation if the policy requires its reset now. */
export async function findDueReset(
  { db, clock }: { readonly db: Db; readonly clock: Clock },
  target: ConversationTarget,
  reset: SessionReset,
): Promise<{ readonly row: ConversationRow; readonly reason: 'daily' | 'idle' } | undefined> {
  const rule = resetRuleOf(reset, target.sessionKey);
  if (rule.mode === 'none') return undefined;
  const row = await db.read(findConversation, { ref: target.ref, principalId: null, agentIds: null });
  if (row === undefined || row.lastSeq === row.modelSeqFloor) return undefined;
  const reason = dueReset(rule, row.updatedAtMs, clock.now());
  return reason && { row, reason };
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
