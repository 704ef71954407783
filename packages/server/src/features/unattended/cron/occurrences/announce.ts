import type { Clock } from '../../../../kernel/clock.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { HeartbeatApi } from '../../heartbeat/api.ts';
import type { InboxApi } from '../../inbox/api.ts';
import type { Finish, StoredEnd } from './finish.ts';
import type { OccurrenceRow } from './occurrence-store.ts';
import { identityOf } from './work.ts';

export interface AnnounceDeps {
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly bootId: string;
  readonly heartbeat: Pick<HeartbeatApi, 'wake' | 'noticeEvent'>;
  readonly inbox: Pick<InboxApi, 'announce'>;
  /** Announces that messages were stored. */
  readonly noticeMessages: () => void;
  /** Called when an execution has ended. */
  readonly ended: (executionId: string) => void;
}

/** Announces an occurrence whose claim was stored. */
export function announceStart({ bus, clock }: AnnounceDeps, row: OccurrenceRow): void {
  bus.emit('scheduler:cron_execution_started', { ...identityOf(row), bootId: row.bootId, timestamp: clock.now() }, row.principalId);
}

/** Announces what the end of an occurrence stored. */
export function announceEnd(deps: AnnounceDeps, { plan, done }: StoredEnd): void {
  deps.ended(plan.end.executionId);
  if (done === undefined) return;
  const { row } = done;
  const { jobId, agentId } = row;
  if (done.delivered && plan.inbox !== undefined) deps.inbox.announce(plan.inbox);
  if (done.delivered && plan.conversation !== undefined) announceMessages(deps, plan.conversation, done.created);
  if (plan.systemEvent?.urgent !== undefined) deps.heartbeat.wake({ agentId, reason: 'cron', mode: 'now', bypassSpacing: true });
  else if (plan.systemEvent !== undefined) deps.heartbeat.noticeEvent(agentId);
  if (done.paused) deps.log.warn({ jobId, agentId }, 'Job paused after consecutive provider failures');
  const terminalAtMs = row.terminalAtMs ?? deps.clock.now();
  deps.bus.emit(
    'scheduler:cron_execution_terminal',
    {
      ...identityOf(row),
      bootId: deps.bootId,
      terminalAtMs,
      durationMs: Math.max(0, terminalAtMs - row.startedAtMs),
      outcomeKind: plan.dependency,
      executionStatus: row.status,
      deliveryStatus: row.deliveryStatus,
      ...(row.errorKind !== null && { errorKind: row.errorKind }),
      ...(row.effectsRefused > 0 && { effectsRefused: row.effectsRefused }),
      timestamp: deps.clock.now(),
    },
    row.principalId,
  );
}

function announceMessages(
  { bus, clock, noticeMessages }: AnnounceDeps,
  { ref, sessionKey, agentId, principalId }: NonNullable<Finish['conversation']>,
  isNew: boolean,
): void {
  noticeMessages();
  if (isNew) bus.emit('session:created', { conversationRef: ref, sessionKey, agentId, timestamp: clock.now() }, principalId);
}
