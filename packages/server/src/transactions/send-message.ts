import { addParts } from '../features/channels/delivery/store.ts';
import type { Begun, NewSend } from '../features/channels/outgoing/api.ts';
import { enterOperation } from '../features/channels/outgoing/store.ts';
import { appendAudit } from '../kernel/db/audit.ts';
import { operation } from '../kernel/db/operation.ts';

/** Stores a message of a program or an agent for sending, with its identity and audit row; a repeat stores nothing. */
export const sendMessage = operation('outgoing.send', async (tx, { operation: entered, parts, audit }: NewSend): Promise<Begun> => {
  const begun: Begun = entered === undefined ? { is: 'new' } : await enterOperation(tx, entered);
  if (begun.is !== 'new') return begun;
  await addParts(tx, parts);
  if (audit !== undefined) await appendAudit(tx, audit);
  return begun;
});
