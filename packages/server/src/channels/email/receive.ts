import type { FetchMessageObject } from 'imapflow';
import { sleep } from '../../kernel/timers.ts';
import type { AdapterDeps, ReceivedMessage, Sink } from '../port.ts';
import { advance, type Cursor, cursorIn, firstCursor, parseCursor, type Passed, wasThere } from './cursor.ts';
import type { EmailConfig } from './email.ts';
import { type Ignored, ignoredReason } from './head.ts';
import { type ImapConnection, ServerFailed } from './imap.ts';
import { headerQuery, loadText, type Mail, mailOf, messageOf, threadOf } from './mail.ts';
import type { Quota } from './quota.ts';
import type { Threads } from './threads.ts';

/** Mails whose headers are read, and that are stored, at once. */
const batchSize = 20;
/** Time in which the server may say nothing before it is asked. */
const defaultIdleMs = 30_000;
const againMs = 1_000;
const maxUnreadable = 1_000;
const dayMs = 24 * 60 * 60_000;

/** A message, or why a mail is none. */
type Read = ReceivedMessage | Ignored | 'was_there' | 'unreadable';

/** What an adapter keeps between two connections. */
export interface Memory {
  readonly threads: Threads;
  readonly quota: Quota;
  /** Mails that a connection failed at, as `validity:uid`: passed over from then on. */
  readonly unreadable: Set<string>;
}

interface ReceiverOptions {
  readonly deps: AdapterDeps<EmailConfig>;
  readonly imap: ImapConnection;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  readonly memory: Memory;
}

/** Receives the mails of one mailbox over one connection, from the position that was stored last. */
export class Receiver {
  readonly #options: ReceiverOptions;
  #cursor: Cursor;
  #wake = Promise.withResolvers<void>();
  /** The mail that is being read. */
  #reading: number | undefined;

  private constructor(options: ReceiverOptions, cursor: Cursor) {
    this.#options = options;
    this.#cursor = cursor;
    options.imap.client.on('exists', () => this.#wake.resolve());
    options.imap.client.on('close', () => this.#wake.resolve());
  }

  /** Finds the position; at the first connect ever it is behind the mails that are there. */
  static async create(options: ReceiverOptions): Promise<Receiver> {
    const { sink, imap, deps } = options;
    const stored = parseCursor(sink.cursor);
    if (stored === undefined && sink.cursor !== undefined)
      deps.log.warn({}, 'Email: the stored position can’t be read; older mails are not received');
    const cursor = stored === undefined ? firstCursor(imap.box, deps.clock.now()) : cursorIn(stored, imap.box);
    if (stored !== undefined && stored.validity !== cursor.validity)
      deps.log.warn({ before: stored.validity, now: cursor.validity }, 'Email: the mailbox was made again; only mails that are newer are received');
    const receiver = new Receiver(options, cursor);
    if (stored?.validity !== cursor.validity) await receiver.#store([]);
    return receiver;
  }

  /** Receives until the connection ends: rejects with `ServerFailed`. */
  async run(): Promise<never> {
    const { imap, sink, deps } = this.#options;
    const idleMs = deps.config.idleMs ?? defaultIdleMs;
    for (;;) {
      this.#wake = Promise.withResolvers();
      try {
        while (await this.#receiveSome());
      } catch (error) {
        if (error instanceof ServerFailed && error.kind === 'unreadable') this.#noteUnreadable();
        throw error;
      }
      sink.alive();
      // Ends with the next command, or with the connection.
      void imap.client.idle().catch(() => {});
      await this.#sleep(idleMs);
      await imap.within(imap.client.noop());
      if (!imap.isOpen) throw new ServerFailed('transient', 'The server closed the connection');
      if (String(imap.box.uidValidity) !== this.#cursor.validity) throw new ServerFailed('transient', 'The mailbox was made again');
    }
  }

  #noteUnreadable(): void {
    const { unreadable } = this.#options.memory;
    if (this.#reading !== undefined) unreadable.add(`${this.#cursor.validity}:${this.#reading}`);
    const [oldest] = unreadable;
    if (unreadable.size > maxUnreadable && oldest !== undefined) unreadable.delete(oldest);
  }

  async #sleep(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.deps.clock.after(ms, resolve);
    await Promise.race([promise, this.#wake.promise]);
    cancel();
  }

  /** Receives and stores at most a batch; returns whether there may be more. */
  async #receiveSome(): Promise<boolean> {
    const { imap, sink, deps } = this.#options;
    const uids = await this.#newUids();
    const batch = uids.slice(0, batchSize);
    const messages: ReceivedMessage[] = [];
    const taken: number[] = [];
    const ignored = new Map<string, number>();
    for (const uid of batch) {
      const read = await this.#read(uid);
      if (typeof read === 'object') {
        messages.push(read);
        taken.push(uid);
      } else if (read !== undefined) ignored.set(read, (ignored.get(read) ?? 0) + 1);
    }
    if (ignored.size > 0) deps.log.debug(Object.fromEntries(ignored), 'Email: ignored mails');
    if (batch.length > 0) await this.#store(messages);
    if (taken.length > 0 && deps.config.markSeen && imap.box.readOnly !== true)
      await imap.within(imap.client.messageFlagsAdd(taken, ['\\Seen'], { uid: true }));
    sink.alive();
    return uids.length > batchSize;
  }

  /** A range that ends with `*` contains the last mail, however old it is. */
  async #newUids(): Promise<number[]> {
    const { imap } = this.#options;
    const { uid, before } = this.#cursor;
    const query = { uid: `${uid + 1}:*`, ...(before !== undefined && { since: new Date(before.atMs - dayMs) }) };
    const found = await imap.within(imap.client.search(query, { uid: true }));
    if (!Array.isArray(found)) throw new ServerFailed('transient', 'The server refused to search');
    return found.filter((one) => one > uid).toSorted((a, b) => a - b);
  }

  /** Reads one mail and moves the position behind it; returns why it is ignored, undefined when it is not there any more. */
  async #read(uid: number): Promise<Read | undefined> {
    const { imap, deps, memory } = this.#options;
    this.#reading = uid;
    if (memory.unreadable.has(`${this.#cursor.validity}:${uid}`)) {
      deps.log.warn({ uid }, 'Email: a mail can’t be read, and is passed over');
      this.#pass({ uid, arrivedAtMs: this.#cursor.atMs, messageId: undefined });
      return 'unreadable';
    }
    const fetched = await imap.within(imap.client.fetchOne(String(uid), headerQuery, { uid: true }));
    if (fetched === false) {
      this.#pass({ uid, arrivedAtMs: this.#cursor.atMs, messageId: undefined });
      return undefined;
    }
    const { read, passed } = await this.#judge(fetched);
    this.#pass(passed);
    this.#reading = undefined;
    return read;
  }

  async #judge(fetched: FetchMessageObject): Promise<{ readonly passed: Passed; readonly read: Read }> {
    const { deps } = this.#options;
    const { uid } = fetched;
    try {
      const mail = await mailOf(fetched, deps.clock.now());
      const { head, arrivedAtMs, sentAtMs } = mail;
      const passed = { uid, arrivedAtMs, messageId: head.messageId };
      const reason = wasThere(this.#cursor, { ...passed, sentAtMs }) ? 'was_there' : ignoredReason(head, deps.config.address);
      return { passed, read: reason === undefined && head.from !== undefined ? await this.#receive(mail, head.from) : (reason ?? 'no_author') };
    } catch (error) {
      if (error instanceof ServerFailed) throw error;
      deps.log.warn({ uid, err: error }, 'Email: a mail can’t be parsed, and is passed over');
      return { passed: { uid, arrivedAtMs: this.#cursor.atMs, messageId: undefined }, read: 'unreadable' as const };
    }
  }

  async #receive(mail: Mail, from: NonNullable<Mail['head']['from']>): Promise<ReceivedMessage | 'too_many'> {
    const { imap, deps, memory } = this.#options;
    if (memory.quota.isExceeded(from.address, deps.clock.now())) return 'too_many';
    const { head } = mail;
    const threadId = threadOf(head);
    if (threadId !== undefined)
      memory.threads.note(from.address, threadId, {
        subject: head.subject,
        chain: [...head.references, ...(head.messageId === undefined ? [] : [head.messageId])],
      });
    return messageOf(mail, from, await loadText(mail, imap), deps.config, this.#cursor.validity);
  }

  #pass(passed: Passed): void {
    this.#cursor = advance(this.#cursor, passed);
  }

  /** Stores messages and the position behind them, again until it succeeds: they are marked as read only afterwards. */
  async #store(messages: readonly ReceivedMessage[]): Promise<void> {
    const { sink, deps, imap, signal } = this.#options;
    for (;;) {
      try {
        return await sink.take(messages, JSON.stringify(this.#cursor));
      } catch (error) {
        deps.log.warn({ err: error }, 'Failed to store mails; they are tried again');
        await sleep(deps.clock, againMs, signal);
        if (signal.aborted || !imap.isOpen) throw new ServerFailed('transient', 'The mails could not be stored');
      }
    }
  }
}
