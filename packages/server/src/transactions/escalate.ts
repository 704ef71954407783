import { inboxDeliver } from '../features/unattended/inbox/store.ts';
import { operation } from '../kernel/db/operation.ts';

/** A call that nobody was there to approve is told to the owner of its conversation. */
export const escalate = operation('autonomy.escalate', inboxDeliver);
