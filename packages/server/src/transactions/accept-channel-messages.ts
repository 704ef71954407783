import type { PartRow } from '../features/channels/delivery/api.ts';
import { addParts } from '../features/channels/delivery/store.ts';
import {
  addMessage,
  findChanged,
  keepChange,
  markFull,
  markReported,
  markTurn,
  type MessageChange,
  messageKind,
  type MessageRow,
  type PairingRow,
  readChanges,
  replaceText,
  requestPairing,
  saveCursor,
} from '../features/channels/messages/store.ts';
import { type Choice, findWaiting, isQueueFull, saveChoice } from '../features/channels/messages/conversations-store.ts';
import { isEmpty, withLater, withText } from '../features/channels/messages/digest.ts';
import type { MessageWork } from '../features/channels/messages/run-message.ts';
import { acceptWork, changeUnclaimed, dropUnclaimed } from '../features/unattended/durable/store.ts';
import type { InboxMessage } from '../features/unattended/inbox/api.ts';
import { inboxDeliver } from '../features/unattended/inbox/store.ts';
import type { NewWork } from '../features/unattended/durable/api.ts';
import { AppError } from '../kernel/app-error.ts';
import { derivedId } from '../kernel/ids.ts';
import { appendAudit, type AuditRow } from '../kernel/db/audit.ts';
import { operation, type Tx } from '../kernel/db/operation.ts';

export interface MessageIntake {
  readonly row: MessageRow;
  /** The agent that it chose for its conversation. */
  readonly choice?: Choice | undefined;
  /** Its turn. */
  readonly work?: NewWork | undefined;
  /** Whether it may be answered together with pending late messages of its sender. */
  readonly joins?: boolean | undefined;
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

/** Ids of messages that are new, and of those among them that no turn was started for, as too many wait. */
export interface Accepted {
  readonly added: readonly string[];
  readonly full: readonly string[];
}

/** Stores messages of a platform with what follows from them, in one commit: only then the platform gets its acknowledgement. */
export const acceptChannelMessages = operation(
  'channels.accept',
  async (tx, { messages, changes = [], cursor }: AcceptedBatch): Promise<Accepted> => {
    if (cursor !== undefined) await saveCursor(tx, cursor);
    const added: string[] = [];
    const full: string[] = [];
    for (const { row, work, joins, choice, pairing, reply = [], replyWhenFull = [] } of messages) {
      if (!(await addMessage(tx, row))) continue;
      if (choice !== undefined) await saveChoice(tx, choice);
      const isJoined = joins === true && work !== undefined && (await joinDigest(tx, row, work));
      if (!isJoined && work !== undefined && !(await acceptIfFits(tx, row, work))) {
        await markFull(tx, { id: row.id });
        await addParts(tx, replyWhenFull);
        await inboxDeliver(tx, alertOfFull(row, replyWhenFull[0]?.principalId ?? ''));
        full.push(row.id);
      } else if (pairing === undefined || (await requestPairing(tx, pairing))) await addParts(tx, reply);
      added.push(row.id);
    }
    for (const change of changes) await changeMessage(tx, change);
    return { added, full };
  },
);

/** Starts the turn of a message that started none. */
export const retryChannelMessage = operation(
  'channels.retry',
  async (tx, { row, work, audit }: { readonly row: MessageRow; readonly work: NewWork; readonly audit: AuditRow }): Promise<void> => {
    if (!(await markTurn(tx, row)))
      throw new AppError('precondition_failed', 'The message has a turn, or its sender deleted it', { param: 'messageId' });
    await acceptWork(tx, work);
    await appendAudit(tx, audit);
  },
);

/**
 * A message whose turn has not started gets its new text, or is dropped, and one without a turn is answered as it is then. What a turn has seen
 * becomes a note for the next one.
 */
async function changeMessage(tx: Tx, change: MessageChange): Promise<void> {
  const found = await findChanged(tx, change);
  if (found === undefined) return;
  const { id, verdict, text: was } = found;
  const { text } = change;
  const isDeleted = text === '';
  const isWaiting = await changeWaiting(tx, found, change);
  if (!isDeleted && (isWaiting || verdict !== 'turn')) await replaceText(tx, { id, text });
  else if (!isWaiting) await keepChange(tx, { id, text: text === was ? null : text });
}

/** Changes the text of a message in its pending work, its own or that of late ones with it; false when a turn has seen it. */
async function changeWaiting(
  tx: Tx,
  { id, conversationRef }: { readonly id: string; readonly conversationRef: string | null },
  { senderId, text, atMs }: MessageChange,
): Promise<boolean> {
  const digest = conversationRef === null ? undefined : await findWaiting(tx, { conversationRef, senderId });
  for (const key of new Set([id, digest ?? id])) {
    let changed: MessageWork | undefined;
    const change = (payload: unknown) => (changed = withText(workOf(payload), key === id ? undefined : id, text));
    const work = { kind: messageKind, key };
    if (!(await changeUnclaimed(tx, work, change))) continue;
    if (changed !== undefined && isEmpty(changed)) await dropUnclaimed(tx, { ...work, atMs });
    return true;
  }
  return false;
}

/** Written only by the intake. */
const workOf = (payload: unknown) => payload as MessageWork;

/** Adds a message to the pending late ones of its sender; false when there are none. */
async function joinDigest(tx: Tx, { id, conversationRef, senderId, sentAtMs }: MessageRow, work: NewWork): Promise<boolean> {
  if (conversationRef === null || work.kind !== messageKind) return false;
  const key = await findWaiting(tx, { conversationRef, senderId });
  const add = (digest: unknown) => withLater(workOf(digest), { id, sentAtMs, work: workOf(work.payload) });
  return key !== undefined && (await changeUnclaimed(tx, { kind: messageKind, key }, add));
}

/** Reports a full queue once a day for each conversation. */
function alertOfFull(
  { instance, channelType, conversationId, agentId, conversationRef, receivedAtMs }: MessageRow,
  principalId: string,
): InboxMessage {
  const opKey = `channel:${conversationRef}:full:${Math.floor(receivedAtMs / dayMs)}`;
  return {
    id: derivedId('in', opKey),
    opKey,
    digest: 'full',
    source: 'channel',
    agentId,
    conversationRef,
    principalId,
    level: 'alert',
    text: `Too many messages wait in ${conversationId} (${channelType}, "${instance}"): further ones are recorded without a turn. Next step: \`gatehouse channels messages\` lists them as "full", \`gatehouse channels retry ID\` answers one.`,
    atMs: receivedAtMs,
  };
}

const dayMs = 24 * 60 * 60_000;

/** Starts the turn of a message, with what its author has changed; a full queue refuses before it writes anything. */
async function acceptIfFits(tx: Tx, row: MessageRow, work: NewWork): Promise<boolean> {
  if (row.conversationRef !== null && work.kind === messageKind && (await isQueueFull(tx, { conversationRef: row.conversationRef }))) return false;
  const changes = await readChanges(tx, row);
  const reported = changes.map(({ was, now }) => ({ was, now }));
  try {
    await acceptWork(tx, changes.length === 0 ? work : { ...work, payload: Object.assign({}, work.payload, { changes: reported }) });
  } catch (error) {
    if (error instanceof AppError && error.code === 'unavailable') return false;
    throw error;
  }
  await markReported(tx, changes);
  return true;
}

export const channelMessageTransactions = [acceptChannelMessages, retryChannelMessage];
