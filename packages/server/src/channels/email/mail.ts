import type { FetchMessageObject, FetchQueryObject } from 'imapflow';
import type { ReceivedMessage } from '../port.ts';
import { isVouchedFor } from './authentication.ts';
import { attachmentsOf, maxPartBytes, type Parts, partsOf, textOf } from './body.ts';
import type { EmailConfig } from './email.ts';
import { type Head, parseHead } from './head.ts';
import type { ImapConnection } from './imap.ts';

/** Largest header; what is behind it is not read. */
const maxHeaderBytes = 65_536;

/** Everything about a mail but its body. */
export const headerQuery: FetchQueryObject = {
  uid: true,
  internalDate: true,
  bodyStructure: true,
  bodyParts: [{ key: 'HEADER', maxLength: maxHeaderBytes }],
};

/** A mail whose header was read. */
export interface Mail {
  readonly uid: number;
  readonly head: Head;
  readonly parts: Parts;
  readonly arrivedAtMs: number;
  /** Not after its arrival, whatever its author says. */
  readonly sentAtMs: number;
}

export async function mailOf({ uid, headers, bodyStructure, internalDate }: FetchMessageObject, nowMs: number): Promise<Mail> {
  const head = await parseHead(headers ?? Buffer.alloc(0));
  const arrivedAtMs = internalDate === undefined ? nowMs : new Date(internalDate).getTime();
  return { uid, head, parts: partsOf(bodyStructure), arrivedAtMs, sentAtMs: Math.min(head.sentAtMs ?? arrivedAtMs, arrivedAtMs) };
}

/** Loads the text of a mail, without its files. */
export async function loadText({ uid, parts }: Mail, imap: ImapConnection): Promise<string> {
  const wanted =
    parts.texts.length > 0 ? [...parts.texts, ...(parts.html === undefined ? [] : [parts.html])] : [parts.html].filter((part) => part !== undefined);
  if (wanted.length === 0) return '';
  const bodyParts = wanted.map((key) => ({ key, maxLength: maxPartBytes }));
  const fetched = await imap.within(imap.client.fetchOne(String(uid), { uid: true, bodyParts }, { uid: true }));
  return textOf(parts, fetched === false ? undefined : fetched.bodyParts);
}

/** Returns by which id a sender is known: one that no allowlist, owner or pairing of the address matches, unless the address was checked. */
export function senderIdOf(address: string, { values }: Head, { trustFrom, authServId }: EmailConfig): string {
  return trustFrom || isVouchedFor(address, values('authentication-results'), authServId) ? address : `unverified:${address}`;
}

/** Returns the thread of a mail: the Message-ID of its first mail. */
export const threadOf = ({ messageId, references }: Head): string | undefined => references[0] ?? messageId;

/** Returns a mail as a message of the port. `from` is the author of its header. */
export function messageOf(mail: Mail, from: NonNullable<Head['from']>, text: string, config: EmailConfig, validity: string): ReceivedMessage {
  const { uid, head, parts, sentAtMs } = mail;
  const { messageId, subject } = head;
  const senderId = senderIdOf(from.address, head, config);
  const attachments = attachmentsOf(parts, validity, uid);
  return {
    // The same mail has another UID when the mailbox was made again. With the sender, so that nobody takes the id of somebody else's mail.
    eventKey: messageId === undefined ? `${validity}:${uid}` : `${messageId} ${senderId}`,
    messageId,
    conversationId: from.address,
    threadId: threadOf(head),
    conversationKind: 'direct',
    senderId,
    isUnverified: senderId !== from.address,
    senderName: from.name,
    isBot: false,
    text: text === '' ? subject : text,
    ...(subject !== '' && { subject }),
    mentionsUs: true,
    sentAtMs,
    ...(attachments.length > 0 && { attachments }),
  };
}
