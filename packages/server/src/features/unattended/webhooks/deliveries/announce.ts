import type { EventPayload } from '@gatehouse/contract';
import type { Clock } from '../../../../kernel/clock.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';

/** Tells where a delivery stands, so that a list of them need not be asked for again and again. */
export function announceDelivery(
  { bus, clock }: { readonly bus: EventBus; readonly clock: Clock },
  delivery: Omit<EventPayload<'webhook:delivery'>, 'timestamp'>,
): void {
  bus.emit('webhook:delivery', { ...delivery, timestamp: clock.now() });
}
