import { acceptWork } from '../features/unattended/durable/store.ts';
import { enqueueSystemEvent } from '../features/unattended/heartbeat/store.ts';
import { auditOf, type DeliveryIntake, workOf } from '../features/unattended/webhooks/deliveries/delivery-intake.ts';
import { addDelivery, recognize } from '../features/unattended/webhooks/store.ts';
import { appendAudit } from '../kernel/db/audit.ts';
import { operation } from '../kernel/db/operation.ts';

/** Stores everything that the 200 of a webhook promises, in one commit; only increments a count when the delivery is a repeat. */
export const acceptDelivery = operation('webhooks.accept', async (tx, intake: DeliveryIntake) => {
  const known = await recognize(tx, intake.delivery, intake.sameSinceMs);
  if (known === 'delivery') return { isNew: false, isKnownBody: true };
  const work = workOf(intake);
  // First the call that may refuse: a failure before the first write costs the other units of its commit nothing.
  if (work !== undefined) await acceptWork(tx, work);
  await addDelivery(tx, intake.delivery);
  if (intake.event !== undefined) await enqueueSystemEvent(tx, intake.event);
  await appendAudit(tx, auditOf(intake));
  return { isNew: true, isKnownBody: known === 'body' };
});
