import { deliverMessage } from './deliver-message.ts';
import { operation } from '../kernel/db/operation.ts';

/** Reports a call that nobody was there to approve to the owner of its conversation. */
export const escalate = operation('autonomy.escalate', deliverMessage);
