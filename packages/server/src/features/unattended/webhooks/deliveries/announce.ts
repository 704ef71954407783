import type { EventPayload, TraceOutcome } from '@gatehouse/contract';
import type { Clock } from '../../../../kernel/clock.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { TracedWork, TraceWork } from '../../../../kernel/work-trace.ts';

type State = EventPayload<'webhook:delivery'>['state'];

export interface AnnounceDeps {
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly traceWork: TraceWork;
}

/** What the record of a delivery has in addition to its announcement. */
export interface DeliveryTrace extends Pick<
  TracedWork,
  'startedAtMs' | 'traceId' | 'synthetic' | 'principalId' | 'conversationRef' | 'sessionKey' | 'error'
> {
  readonly facts?: NonNullable<TracedWork['facts']>;
}

const ends: { readonly [Ended in State]?: readonly [TraceOutcome, string] } = {
  done: ['ok', 'success'],
  failed: ['failed', 'error'],
  unknown: ['failed', 'error'],
  aborted: ['cancelled', 'cancelled'],
  ignored: ['skipped', 'filtered'],
};

/** Announces the state of a delivery, so that clients need not poll the list, and records one that has ended. */
export function announceDelivery(
  { bus, clock, traceWork }: AnnounceDeps,
  delivery: Omit<EventPayload<'webhook:delivery'>, 'timestamp'>,
  { facts, ...trace }: DeliveryTrace,
): void {
  bus.emit('webhook:delivery', { ...delivery, timestamp: clock.now() });
  const [outcome, endReason] = ends[delivery.state] ?? [];
  if (outcome === undefined || endReason === undefined) return;
  traceWork({
    kind: 'delivery',
    ...trace,
    agentId: delivery.agentId,
    origin: 'webhook',
    channelType: 'webhook',
    channelId: delivery.mapping,
    outcome,
    endReason: outcome === 'failed' && trace.error?.kind === 'timeout' ? 'timeout' : endReason,
    refs: { deliveryId: delivery.deliveryId },
    facts: { mapping: delivery.mapping, ...facts },
  });
}
