import type { PartRow } from '../features/channels/delivery/api.ts';
import { addParts } from '../features/channels/delivery/store.ts';
import { addMessage, markFull, type MessageRow, type PairingRow, requestPairing, saveCursor } from '../features/channels/messages/store.ts';
import { acceptWork } from '../features/unattended/durable/store.ts';
import type { NewWork } from '../features/unattended/durable/api.ts';
import { AppError } from '../kernel/app-error.ts';
import { operation, type Tx } from '../kernel/db/operation.ts';

export interface MessageIntake {
  readonly row: MessageRow;
  /** Its turn. */
  readonly work?: NewWork | undefined;
  readonly pairing?: PairingRow | undefined;
  /** Reply to the sender; with `pairing` only when the request is new. */
  readonly reply?: readonly PartRow[] | undefined;
  /** Reply when no more work is accepted. */
  readonly replyWhenFull?: readonly PartRow[] | undefined;
}

export interface AcceptedBatch {
  readonly messages: readonly MessageIntake[];
  /** How far the instance has received with them. */
  readonly cursor?: { readonly instance: string; readonly cursor: string; readonly atMs: number } | undefined;
}

/** Stores messages of a platform with what follows from them, in one commit: only then the platform gets its acknowledgement. Returns the ids of new ones. */
export const acceptChannelMessages = operation('channels.accept', async (tx, { messages, cursor }: AcceptedBatch): Promise<string[]> => {
  if (cursor !== undefined) await saveCursor(tx, cursor);
  const added: string[] = [];
  for (const { row, work, pairing, reply = [], replyWhenFull = [] } of messages) {
    if (!(await addMessage(tx, row))) continue;
    if (work !== undefined && !(await acceptIfFits(tx, work))) {
      await markFull(tx, { id: row.id });
      await addParts(tx, replyWhenFull);
    } else if (pairing === undefined || (await requestPairing(tx, pairing))) await addParts(tx, reply);
    added.push(row.id);
  }
  return added;
});

/** A full queue refuses before it writes anything. */
async function acceptIfFits(tx: Tx, work: NewWork): Promise<boolean> {
  try {
    await acceptWork(tx, work);
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === 'unavailable') return false;
    throw error;
  }
}

export const channelMessageTransactions = [acceptChannelMessages];
