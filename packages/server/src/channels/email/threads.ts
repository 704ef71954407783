import { isMessageId } from './address.ts';
import { parseHead } from './head.ts';
import { ImapConnection, type WireDeps } from './imap.ts';
import { headerQuery } from './mail.ts';

/** What an answer needs to know of the mails before it. */
export interface Thread {
  readonly subject: string;
  /** Message-IDs of the thread, the oldest first, and the one that was received last at the end. */
  readonly chain: readonly string[];
}

const maxThreads = 500;
/** The first and the last of longer threads. */
const maxChain = 20;

/** Remembers the threads that were active last; of others it asks the mailbox. */
export class Threads {
  readonly #known = new Map<string, Thread>();

  note(address: string, threadId: string, thread: Thread): void {
    const key = `${address} ${threadId}`;
    this.#known.delete(key);
    this.#known.set(key, { subject: thread.subject, chain: shorten(thread.chain) });
    const [oldest] = this.#known.keys();
    if (this.#known.size > maxThreads && oldest !== undefined) this.#known.delete(oldest);
  }

  /** Returns what is known of a thread; the thread alone when the mailbox can't be asked, or has nothing of it any more. */
  async find(deps: WireDeps, address: string, threadId: string, signal: AbortSignal): Promise<Thread> {
    const known = this.#known.get(`${address} ${threadId}`);
    if (known !== undefined) return known;
    const found = await searchThread(deps, address, threadId, signal).catch(() => undefined);
    if (found !== undefined) this.note(address, threadId, found);
    return found ?? { subject: '', chain: isMessageId(threadId) ? [threadId] : [] };
  }
}

const shorten = (chain: readonly string[]): readonly string[] =>
  chain.length <= maxChain ? chain : [...chain.slice(0, 1), ...chain.slice(1 - maxChain)];

async function searchThread(deps: WireDeps, address: string, threadId: string, signal: AbortSignal): Promise<Thread | undefined> {
  if (!isMessageId(threadId)) return undefined;
  using imap = await ImapConnection.open(deps, deps.config.mailbox, { signal, readOnly: true });
  const { client } = imap;
  const or = ['message-id', 'references', 'in-reply-to'].map((name) => ({ header: { [name]: threadId } }));
  const found = await imap.within(client.search({ from: address, or }, { uid: true }));
  const uid = Array.isArray(found) ? found.at(-1) : undefined;
  if (uid === undefined) return undefined;
  const mail = await imap.within(client.fetchOne(String(uid), headerQuery, { uid: true }));
  if (mail === false || mail.headers === undefined) return undefined;
  const { subject, references, messageId, from } = await parseHead(mail.headers);
  if (from?.address !== address) return undefined;
  return { subject, chain: [...references, ...(messageId === undefined ? [] : [messageId])] };
}
