import type { EventPayload } from '@gatehouse/contract';
import type { Clock } from '../../../../kernel/clock.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';

/** Announces the state of a delivery, so that clients need not poll the list. */
export function announceDelivery(
  { bus, clock }: { readonly bus: EventBus; readonly clock: Clock },
  delivery: Omit<EventPayload<'webhook:delivery'>, 'timestamp'>,
): void {
  bus.emit('webhook:delivery', { ...delivery, timestamp: clock.now() });
}
