import { addParts } from '../features/channels/delivery/store.ts';
import type { Admission, NewNotification } from '../features/channels/notifications/api.ts';
import { admitNotification } from '../features/channels/notifications/store.ts';
import { operation } from '../kernel/db/operation.ts';

/** Stores a notification for sending, within the limits of its agent. */
export const sendNotification = operation('notifications.send', async (tx, { parts, ...entered }: NewNotification): Promise<Admission> => {
  const admission = await admitNotification(tx, entered);
  if (admission === 'accepted') await addParts(tx, parts);
  return admission;
});
