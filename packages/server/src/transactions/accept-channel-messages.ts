import type { PartRow } from '../features/channels/delivery/api.ts';
import { addParts } from '../features/channels/delivery/store.ts';
import {
  addMessage,
  findChanged,
  keepChange,
  markFull,
  markTurn,
  type MessageChange,
  messageKind,
  type MessageRow,
  type PairingRow,
  replaceText,
  requestPairing,
  saveCursor,
  takeChanges,
} from '../features/channels/messages/store.ts';
import { acceptWork, changeUnclaimed, dropUnclaimed } from '../features/unattended/durable/store.ts';
import type { NewWork } from '../features/unattended/durable/api.ts';
import { AppError } from '../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../kernel/db/audit.ts';
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
  /** New texts of earlier messages. */
  readonly changes?: readonly MessageChange[];
  /** How far the instance has received with them. */
  readonly cursor?: { readonly instance: string; readonly cursor: string; readonly atMs: number } | undefined;
}

/** Stores messages of a platform with what follows from them, in one commit: only then the platform gets its acknowledgement. Returns the ids of new ones. */
export const acceptChannelMessages = operation(
  'channels.accept',
  async (tx, { messages, changes = [], cursor }: AcceptedBatch): Promise<string[]> => {
    if (cursor !== undefined) await saveCursor(tx, cursor);
    const added: string[] = [];
    for (const { row, work, pairing, reply = [], replyWhenFull = [] } of messages) {
      if (!(await addMessage(tx, row))) continue;
      if (work !== undefined && !(await acceptIfFits(tx, await withChanges(tx, row, work)))) {
        await markFull(tx, { id: row.id });
        await addParts(tx, replyWhenFull);
      } else if (pairing === undefined || (await requestPairing(tx, pairing))) await addParts(tx, reply);
      added.push(row.id);
    }
    for (const change of changes) await changeMessage(tx, change);
    return added;
  },
);

/** Starts the turn of a message that started none. */
export const retryChannelMessage = operation(
  'channels.retry',
  async (tx, { row, work, audit }: { readonly row: MessageRow; readonly work: NewWork; readonly audit: AuditRow }): Promise<void> => {
    if (!(await markTurn(tx, row))) throw new AppError('precondition_failed', 'The message has a turn', { param: 'messageId' });
    await acceptWork(tx, work);
    await appendAudit(tx, audit);
  },
);

/** Adds the changes of earlier messages that no turn has seen. */
async function withChanges(tx: Tx, { conversationRef }: MessageRow, work: NewWork): Promise<NewWork> {
  const changes = conversationRef === null ? [] : await takeChanges(tx, { conversationRef });
  return changes.length === 0 ? work : { ...work, payload: Object.assign({}, work.payload, { changes }) };
}

/** A message that no turn has seen gets its new text, or is dropped; later it is a note for the next turn. */
async function changeMessage(tx: Tx, change: MessageChange): Promise<void> {
  const id = await findChanged(tx, change);
  if (id === undefined) return;
  const { text, atMs } = change;
  const work = { kind: messageKind, key: id };
  const isUnseen = text === '' ? await dropUnclaimed(tx, { ...work, atMs }) : await changeUnclaimed(tx, { ...work, text });
  if (isUnseen && text !== '') await replaceText(tx, { id, text });
  if (!isUnseen) await keepChange(tx, { id, text });
}

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

export const channelMessageTransactions = [acceptChannelMessages, retryChannelMessage];
