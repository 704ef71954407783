import type { Clock } from '../../../kernel/clock.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { PartRow } from './api.ts';

/** Announces the state of a part. */
export function announceDelivery(
  { bus, clock }: { readonly bus: EventBus; readonly clock: Clock },
  { channelType, instance, id, state, agentId }: Pick<PartRow, 'channelType' | 'instance' | 'id' | 'state' | 'agentId'>,
): void {
  bus.emit('channel:delivery', { channelType, channelInstanceId: instance, deliveryId: id, state, agentId, timestamp: clock.now() });
}
