import { ImapFlow, type MailboxObject } from 'imapflow';
import type { WireClock } from '../port.ts';
import type { EmailConfig } from './email.ts';

const connectMs = 30_000;
/** Time that the server has for an answer. */
const defaultAnswerMs = 15_000;
/** Largest answer: of a part of a mail at most a megabyte is read. */
const maxLineLength = 4 * 1_048_576;
const maxLiteralSize = 4 * 1_048_576;
const maxResponseSize = 9 * 1_048_576;
/** Ten thousand parts have less than half of it. */
const defaultTokens = 400_000;

export type FailureKind =
  | 'transient'
  | 'unauthorized'
  /** The mailbox does not exist. */
  | 'missing'
  /** An answer that is too large, or that can’t be parsed: it would be the same at the next try. */
  | 'unreadable';

/** The server did not do what it was asked; the text has no secrets. */
export class ServerFailed extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, text: string) {
    super(text);
    this.name = 'ServerFailed';
    this.kind = kind;
  }
}

export interface WireDeps {
  readonly config: EmailConfig;
  readonly clock: WireClock;
  /** Certificates of `tlsCaPath`. */
  readonly ca: Buffer | undefined;
}

/** A connection with one open mailbox. Every call has a deadline: a server that does not answer is left. */
export class ImapConnection implements Disposable {
  readonly client: ImapFlow;
  readonly #deps: WireDeps;
  #box: MailboxObject | undefined;
  #isLate = false;

  private constructor(deps: WireDeps) {
    const { imap } = deps.config;
    this.#deps = deps;
    const isStartTls = imap.tls && imap.port === 143;
    this.client = new ImapFlow({
      host: imap.host,
      port: imap.port,
      secure: imap.tls && !isStartTls,
      doSTARTTLS: isStartTls,
      auth: { user: imap.user, pass: imap.password },
      clientInfo: { name: 'Gatehouse' },
      ...(deps.ca !== undefined && { tls: { ca: deps.ca } }),
      logger: false,
      disableAutoIdle: true,
      connectionTimeout: connectMs,
      maxLineLength,
      maxLiteralSize,
      maxResponseSize,
      maxResponseTokens: deps.config.maxResponseTokens ?? defaultTokens,
    });
    // Its calls reject, too.
    this.client.on('error', () => {});
  }

  /** Connects, logs in and opens a mailbox; rejects with `ServerFailed`. */
  static async open(deps: WireDeps, mailbox: string, { signal, readOnly = false }: { readonly signal: AbortSignal; readonly readOnly?: boolean }) {
    const connection = new ImapConnection(deps);
    const stop = () => connection.client.close();
    if (signal.aborted) throw new ServerFailed('transient', 'The channel stopped');
    signal.addEventListener('abort', stop, { once: true });
    connection.client.once('close', () => signal.removeEventListener('abort', stop));
    try {
      await connection.within(connection.client.connect(), connectMs);
      await connection.switchTo(mailbox, readOnly);
      return connection;
    } catch (error) {
      connection[Symbol.dispose]();
      throw error;
    }
  }

  /** Opens another mailbox. */
  async switchTo(mailbox: string, readOnly: boolean): Promise<void> {
    this.#box = await this.within(this.client.mailboxOpen(mailbox, { readOnly }));
  }

  /** The mailbox as it is now. */
  get box(): MailboxObject {
    const { mailbox } = this.client;
    if (typeof mailbox === 'object') this.#box = mailbox;
    if (this.#box === undefined) throw new ServerFailed('transient', 'No mailbox is open');
    return this.#box;
  }

  get isOpen(): boolean {
    return this.client.usable;
  }

  /** Returns what the work returns; rejects with `ServerFailed` when it fails, or has not ended in time. */
  async within<Value>(work: Promise<Value>, ms = this.#deps.config.answerMs ?? defaultAnswerMs): Promise<Value> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const cancel = this.#deps.clock.after(ms, () => {
      this.#isLate = true;
      reject(this.#failureOf(undefined));
      this.client.close();
    });
    try {
      return await Promise.race([work, late]);
    } catch (error) {
      throw this.#failureOf(error);
    } finally {
      cancel();
    }
  }

  [Symbol.dispose](): void {
    this.client.close();
  }

  #failureOf(error: unknown): ServerFailed {
    if (error instanceof ServerFailed) return error;
    const { host, port } = this.#deps.config.imap;
    const where = `${host}:${port} (IMAP)`;
    if (this.#isLate) return new ServerFailed('transient', `${where} does not answer`);
    const code = textOf(error, 'code');
    const answer = textOf(error, 'serverResponseCode');
    if (hasFlag(error, 'authenticationFailed'))
      return answer === 'UNAVAILABLE'
        ? new ServerFailed('transient', `${where} can’t check the login now`)
        : new ServerFailed('unauthorized', `${where} refuses the login`);
    if (hasFlag(error, 'mailboxMissing') || answer === 'NONEXISTENT' || answer === 'TRYCREATE')
      return new ServerFailed('missing', `${where} has no such mailbox`);
    if (code !== undefined && unreadable.test(code)) return new ServerFailed('unreadable', `${where} sent what can’t be read: ${code}`);
    return new ServerFailed('transient', `${where}: ${answer ?? code ?? 'the connection ended'}`);
  }
}

const unreadable =
  /^(LineTooLarge|LiteralTooLarge|ResponseTooLarge|TooManyTokens|TooManyResponses|MAX_IMAP_NESTING_REACHED|ParserError\w*|ResponseProcessingFailed)$/;

function textOf(error: unknown, key: string): string | undefined {
  const value: unknown = error instanceof Error && key in error ? Reflect.get(error, key) : undefined;
  return typeof value === 'string' && value !== '' ? value.slice(0, 100) : undefined;
}

const hasFlag = (error: unknown, key: string): boolean => error instanceof Error && key in error && Reflect.get(error, key) === true;
