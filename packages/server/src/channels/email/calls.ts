import type { Act, Download, FetchedMessage, LookUp, Place } from '../port.ts';
import { isAddress, isMessageId } from './address.ts';
import { ImapConnection, type WireDeps, ServerFailed } from './imap.ts';
import { headerQuery, loadText, type Mail, mailOf, senderIdOf, threadOf } from './mail.ts';
import { maxAttachmentBytes } from './platform.ts';

/** Newest mails of a correspondent that are searched. */
const maxSearched = 200;
const maxFetched = 50;
const downloadMs = 300_000;
const downloadChunk = 1_048_576;
/** Encoded files are larger. */
const maxEncodedBytes = Math.ceil((maxAttachmentBytes * 78) / 57) + 1_024;
/** Time after which a mail that the server stores on its own is there. */
const storedMs = 60_000;

type Failure = Extract<Act<never>, { readonly is: 'failed' }>;
interface CallOptions {
  readonly signal: AbortSignal;
}

const failureKinds = { transient: 'unavailable', unauthorized: 'denied', missing: 'not_found', unreadable: 'unavailable' } as const;

function failureOf(error: unknown): Failure {
  if (!(error instanceof ServerFailed)) return { is: 'failed', kind: 'unavailable', text: 'The mails can’t be read' };
  return { is: 'failed', kind: failureKinds[error.kind], text: error.message };
}

const notFound: Failure = { is: 'failed', kind: 'not_found', text: 'The conversation has no such mail' };
const notAddress: Failure = { is: 'failed', kind: 'invalid', text: 'The conversation is not an address' };

/** Stores a sent mail, unless the server has done so on its own. */
export async function storeSent(
  deps: WireDeps,
  mailbox: string,
  mail: { readonly messageId: string; readonly raw: Buffer },
  { signal }: CallOptions,
) {
  using imap = await ImapConnection.open(deps, mailbox, { signal });
  if ((await searchId(imap, mail.messageId)).length === 0) await imap.within(imap.client.append(mailbox, mail.raw, ['\\Seen']));
}

/** Finds out whether a mail is among the sent ones. That it is not proves nothing: many servers store none. */
export async function lookUpSent(
  deps: WireDeps,
  messageId: string,
  { signal, sinceMs }: CallOptions & { readonly sinceMs: number },
): Promise<LookUp> {
  const { sentMailbox } = deps.config;
  if (sentMailbox === undefined) return { is: 'unclear', text: 'Nothing says whether the mail was sent: no mailbox of sent mails is configured' };
  try {
    using imap = await ImapConnection.open(deps, sentMailbox, { signal, readOnly: true });
    if ((await searchId(imap, messageId)).length > 0) return { is: 'found', platformId: messageId };
    return { is: 'unclear', text: `The mail is not in ${sentMailbox}`, retry: deps.clock.now() - sinceMs < storedMs };
  } catch (error) {
    return { is: 'unclear', text: failureOf(error).text, retry: true };
  }
}

async function searchId(imap: ImapConnection, messageId: string): Promise<number[]> {
  const found = await imap.within(imap.client.search({ header: { 'message-id': messageId } }, { uid: true }));
  return Array.isArray(found) ? found : [];
}

interface Found {
  readonly mailbox: string;
  readonly mail: Mail;
}

/** Returns the newest mails of a conversation first, both ways as far as sent ones are stored. */
export async function fetchMails(
  deps: WireDeps,
  place: Place,
  { signal, limit, before }: CallOptions & { readonly limit: number; readonly before?: string | undefined },
): Promise<Act<readonly FetchedMessage[]>> {
  const { mailbox, sentMailbox } = deps.config;
  if (!isAddress(place.conversationId)) return notAddress;
  try {
    using imap = await ImapConnection.open(deps, mailbox, { signal, readOnly: true });
    const found: Found[] = await findMails(deps, imap, mailbox, place);
    if (sentMailbox !== undefined) {
      await imap.switchTo(sentMailbox, true);
      found.push(...(await findMails(deps, imap, sentMailbox, place)));
    }
    const sorted = found.toSorted((a, b) => b.mail.sentAtMs - a.mail.sentAtMs || b.mail.uid - a.mail.uid);
    const from = before === undefined ? 0 : sorted.findIndex(({ mail }) => mail.head.messageId === before) + 1;
    if (before !== undefined && from === 0) return notFound;
    const wanted = sorted.slice(from, from + Math.min(limit, maxFetched));
    const texts = new Map<Found, string>();
    for (const name of new Set(wanted.map((one) => one.mailbox))) {
      await imap.switchTo(name, true);
      for (const one of wanted.filter((other) => other.mailbox === name)) texts.set(one, await loadText(one.mail, imap));
    }
    return { is: 'done', value: wanted.map((one) => fetchedOf(deps, one, texts.get(one) ?? '')) };
  } catch (error) {
    return failureOf(error);
  }
}

function fetchedOf({ config }: WireDeps, { mailbox, mail: { head, sentAtMs } }: Found, text: string): FetchedMessage {
  const { messageId = '', from, subject } = head;
  const isOwn = mailbox !== config.mailbox || from === undefined;
  return {
    messageId,
    senderId: isOwn ? config.address.toLowerCase() : senderIdOf(from.address, head, config),
    text: text === '' ? subject : text,
    sentAtMs,
  };
}

async function findMails({ config, clock }: WireDeps, imap: ImapConnection, mailbox: string, { conversationId, threadId }: Place): Promise<Found[]> {
  const isReceived = mailbox === config.mailbox;
  const uids = await imap.within(imap.client.search(isReceived ? { from: conversationId } : { to: conversationId }, { uid: true }));
  if (!Array.isArray(uids) || uids.length === 0) return [];
  const fetched = await imap.within(imap.client.fetchAll(uids.slice(-maxSearched), headerQuery, { uid: true }), downloadMs);
  const mails = await Promise.all(fetched.map((one) => mailOf(one, clock.now())));
  return mails
    .filter(({ head }) => head.messageId !== undefined && (!isReceived || head.from?.address === conversationId))
    .filter(({ head }) => threadId === undefined || threadOf(head) === threadId)
    .map((mail) => ({ mailbox, mail }));
}

/** Opens a file of a received mail; the connection ends with its stream. */
export async function downloadFile(deps: WireDeps, ref: string, { signal }: CallOptions): Promise<Download> {
  const [, validity, uid, part] = /^(\d{1,20}):(\d{1,10}):(\d{1,4}(?:\.\d{1,4}){0,9})$/.exec(ref) ?? [];
  if (uid === undefined || part === undefined) return { is: 'gone', text: 'This is not a file of a mail' };
  let imap: ImapConnection | undefined;
  try {
    imap = await ImapConnection.open(deps, deps.config.mailbox, { signal, readOnly: true });
    if (String(imap.box.uidValidity) !== validity) return gone(imap, 'The mailbox was made again since the mail was received');
    const { meta, content } = await imap.within(
      imap.client.download(uid, part, { uid: true, maxBytes: maxEncodedBytes, chunkSize: downloadChunk, decodeText: false }),
    );
    if (content === undefined) return gone(imap, 'The mail is not in the mailbox any more');
    if ((meta.expectedSize ?? 0) > maxEncodedBytes) {
      content.destroy();
      return gone(imap, `The file is larger than ${maxAttachmentBytes} bytes`);
    }
    return { is: 'opened', stream: streamOf(content, imap, deps) };
  } catch (error) {
    imap?.[Symbol.dispose]();
    return { is: 'unavailable', text: failureOf(error).text };
  }
}

function gone(imap: ImapConnection, text: string): Download {
  imap[Symbol.dispose]();
  return { is: 'gone', text };
}

/** A stream that nobody reads to its end is closed after some time. */
function streamOf(
  content: AsyncIterable<unknown> & { on(event: 'error', listener: () => void): unknown },
  imap: ImapConnection,
  { clock }: WireDeps,
) {
  content.on('error', () => {});
  const cancel = clock.after(downloadMs, () => imap[Symbol.dispose]());
  return (async function* read(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of content) if (chunk instanceof Uint8Array) yield chunk;
    } finally {
      cancel();
      imap[Symbol.dispose]();
    }
  })();
}

/** Carries out an action of `email.action` on a mail of the conversation. */
export async function actOnMail(
  deps: WireDeps,
  name: string,
  params: Readonly<Record<string, unknown>>,
  { place, signal }: CallOptions & { readonly place: Place },
): Promise<Act<Readonly<Record<string, unknown>>>> {
  const { message_id: id, read = true, flagged = true, mailbox } = params;
  if (!isAddress(place.conversationId)) return notAddress;
  if (typeof id !== 'string' || !isMessageId(id))
    return { is: 'failed', kind: 'invalid', text: 'message_id: expected a Message-ID in angle brackets' };
  try {
    using imap = await ImapConnection.open(deps, deps.config.mailbox, { signal });
    const uid = await findReceived(deps, imap, id, place);
    if (uid === undefined) return notFound;
    switch (name) {
      case 'mark_read':
        await setFlag(imap, uid, '\\Seen', read === true);
        return { is: 'done', value: { marked: true, message_id: id, read: read === true } };
      case 'flag':
        await setFlag(imap, uid, '\\Flagged', flagged === true);
        return { is: 'done', value: { marked: true, message_id: id, flagged: flagged === true } };
      case 'move': {
        if (typeof mailbox !== 'string' || /[\p{Cc}]/u.test(mailbox)) return { is: 'failed', kind: 'invalid', text: 'mailbox: expected its name' };
        const moved = await imap.within(imap.client.messageMove(String(uid), mailbox, { uid: true }));
        if (moved === false) return { is: 'failed', kind: 'not_found', text: 'The mail was not moved: the server has no such mailbox' };
        return { is: 'done', value: { moved: true, message_id: id, mailbox } };
      }
      default:
        return { is: 'failed', kind: 'invalid', text: `Email has no action ${name}` };
    }
  } catch (error) {
    return failureOf(error);
  }
}

async function setFlag(imap: ImapConnection, uid: number, flag: string, isSet: boolean): Promise<void> {
  const { client } = imap;
  const done = await imap.within(
    isSet ? client.messageFlagsAdd(String(uid), [flag], { uid: true }) : client.messageFlagsRemove(String(uid), [flag], { uid: true }),
  );
  if (!done) throw new ServerFailed('transient', 'The server did not change the flag');
}

/** Returns the UID of a mail that the conversation's correspondent wrote: a Message-ID alone could be that of anybody's mail. */
async function findReceived({ clock }: WireDeps, imap: ImapConnection, messageId: string, { conversationId }: Place): Promise<number | undefined> {
  for (const uid of (await searchId(imap, messageId)).slice(-10)) {
    const fetched = await imap.within(imap.client.fetchOne(String(uid), headerQuery, { uid: true }));
    if (fetched === false) continue;
    const { head } = await mailOf(fetched, clock.now());
    if (head.messageId === messageId && head.from?.address === conversationId) return uid;
  }
  return undefined;
}
