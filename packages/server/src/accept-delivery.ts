import type { NewWork } from './features/durable/api.ts';
import { acceptWork } from './features/durable/store.ts';
import type { SystemEvent } from './features/heartbeat/api.ts';
import { enqueueSystemEvent } from './features/heartbeat/store.ts';
import { addDelivery, type DeliveryRow, noteRepeat } from './features/webhooks/store.ts';
import { appendAudit, type AuditRow } from './kernel/db/audit.ts';
import { operation } from './kernel/db/operation.ts';

/** A webhook and what it causes: a turn, a heartbeat, or nothing. */
export interface DeliveryIntake {
  readonly delivery: DeliveryRow;
  readonly work?: NewWork | undefined;
  readonly event?: SystemEvent | undefined;
  readonly audit: AuditRow;
}

/** Everything that the 200 of a webhook promises, in one commit; nothing but a count when the delivery is a repeat. */
export const acceptDelivery = operation('webhooks.accept', async (tx, { delivery, work, event, audit }: DeliveryIntake) => {
  if (await noteRepeat(tx, delivery)) return { isNew: false, isKnownBody: true };
  // The one that may refuse comes first: what fails before it has written anything costs the others of its commit nothing.
  if (work !== undefined) await acceptWork(tx, work);
  const { isKnownBody } = await addDelivery(tx, delivery);
  if (event !== undefined) await enqueueSystemEvent(tx, event);
  await appendAudit(tx, audit);
  return { isNew: true, isKnownBody };
});
