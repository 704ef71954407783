import { inboxDeliver } from '../features/unattended/inbox/store.ts';
import { operation } from '../kernel/db/operation.ts';

/** Reports a call that nobody was there to approve to the owner of its conversation. */
export const escalate = operation('autonomy.escalate', inboxDeliver);
