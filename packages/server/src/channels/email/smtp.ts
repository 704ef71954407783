import { Readable } from 'node:stream';
import SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { SendResult } from '../port.ts';
import { domainOf, oneLine } from './address.ts';
import type { WireDeps } from './imap.ts';

const loginMs = 30_000;
/** Time from the login to the answer to the final dot: servers check mails before they answer. */
const sendMs = 300_000;
const maxAnswer = 65_536;
/** Between two tries of what a server can't accept now; greylisting accepts it after some minutes. */
const laterMs = 120_000;
/** Ports whose servers begin without TLS. */
const startTlsPorts: ReadonlySet<number> = new Set([25, 587]);

type Evidence = 'login' | 'envelope' | 'text';

/** The server did not do what it was asked, in a phase that says what it may have done. */
class SmtpFailed extends Error {
  readonly phase: Evidence;
  /** Code of a complete answer. */
  readonly code: number | undefined;
  readonly answer: string;
  /** Command that the answer belongs to; `DATA` also for the answer to the text. */
  readonly command: string;
  readonly isLogin: boolean;
  readonly isTooLarge: boolean;

  constructor(error: unknown, phase: Evidence, hide: (text: string) => string) {
    const field = (key: string): unknown => (error instanceof Error && key in error ? Reflect.get(error, key) : undefined);
    const [code, answer, kind] = [field('responseCode'), field('response'), field('code')];
    super(hide(oneLine(typeof answer === 'string' ? answer : typeof kind === 'string' ? kind : 'the connection ended', 200)));
    this.name = 'SmtpFailed';
    this.phase = phase;
    this.code = typeof code === 'number' ? code : undefined;
    this.answer = typeof answer === 'string' ? answer : '';
    this.command = String(field('command') ?? '');
    this.isLogin = kind === 'EAUTH';
    this.isTooLarge = kind === 'EMESSAGE' && phase === 'envelope' && this.code === undefined;
  }
}

/** One SMTP session. Its phase is known from what the server asked for: the text of a mail is read only after a 354. */
class Session {
  readonly #deps: WireDeps;
  readonly #connection: SMTPConnection;
  readonly #broken = Promise.withResolvers<never>();
  #phase: Evidence = 'login';

  constructor(deps: WireDeps) {
    const { smtp, address } = deps.config;
    this.#deps = deps;
    const isStartTls = smtp.tls && startTlsPorts.has(smtp.port);
    this.#connection = new SMTPConnection({
      host: smtp.host,
      port: smtp.port,
      name: domainOf(address),
      secure: smtp.tls && !isStartTls,
      requireTLS: isStartTls,
      ignoreTLS: !smtp.tls,
      ...(deps.ca !== undefined && { tls: { ca: deps.ca } }),
      maxResponseSize: maxAnswer,
      connectionTimeout: loginMs,
      socketCloseTimeout: 0,
    });
    this.#broken.promise.catch(() => {});
    this.#connection.on('error', (error) => this.#broken.reject(error));
    this.#connection.on('end', () => this.#broken.reject(new Error('The connection ended')));
  }

  async login(signal: AbortSignal): Promise<void> {
    const { user, password } = this.#deps.config.smtp;
    await this.#within(loginMs, signal, async () => {
      await this.#call((done) => this.#connection.connect(done));
      if (user !== undefined) await this.#call((done) => this.#connection.login({ user, pass: password ?? '' }, done));
    });
  }

  async send(to: string, raw: Buffer, signal: AbortSignal): Promise<void> {
    const { address } = this.#deps.config;
    this.#phase = 'envelope';
    const body = Readable.from(this.#textOf(raw));
    await this.#within(sendMs, signal, () =>
      this.#call((done) => this.#connection.send({ from: address, to: [to], size: raw.length }, body, (error) => done(error))),
    );
  }

  end(): void {
    this.#connection.quit();
    this.#connection.close();
  }

  *#textOf(raw: Buffer): Generator<Buffer> {
    this.#phase = 'text';
    yield raw;
  }

  #call(run: (done: (error?: Error | null) => void) => void): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    run((error) => (error == null ? resolve() : reject(error)));
    return Promise.race([promise, this.#broken.promise]);
  }

  /** Rejects with `SmtpFailed`, in time. */
  async #within(ms: number, signal: AbortSignal, run: () => Promise<void>): Promise<void> {
    const stop = () => {
      this.#broken.reject(new Error('Stopped'));
      this.#connection.close();
    };
    const cancel = this.#deps.clock.after(ms, stop);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    try {
      await run();
    } catch (error) {
      throw new SmtpFailed(error, this.#phase, (text) => this.#hide(text));
    } finally {
      cancel();
      signal.removeEventListener('abort', stop);
    }
  }

  /** A server may repeat what it was sent. */
  #hide(text: string): string {
    const { password } = this.#deps.config.smtp;
    if (password === undefined) return text;
    return [password, Buffer.from(password).toString('base64')].reduce((shown, secret) => shown.replaceAll(secret, '…'), text);
  }
}

export type SmtpCheck = { readonly is: 'ready' } | { readonly is: 'unauthorized' | 'transient'; readonly text: string };

/** Connects and logs in, and does nothing else. */
export async function checkSmtp(deps: WireDeps, signal: AbortSignal): Promise<SmtpCheck> {
  const session = new Session(deps);
  try {
    await session.login(signal);
    return { is: 'ready' };
  } catch (error) {
    if (!(error instanceof SmtpFailed)) throw error;
    return isRefusedLogin(error)
      ? { is: 'unauthorized', text: `${whereOf(deps)} refuses the login: ${error.message}` }
      : { is: 'transient', text: `${whereOf(deps)}: ${error.message}` };
  } finally {
    session.end();
  }
}

export type SmtpEnd = { readonly result: SendResult; readonly isLoginRefused: boolean };

/** Sends a mail to one address; never rejects. */
export async function sendOverSmtp(deps: WireDeps, to: string, raw: Buffer, signal: AbortSignal): Promise<SmtpEnd> {
  const session = new Session(deps);
  try {
    await session.login(signal);
    await session.send(to, raw, signal);
    return { result: { is: 'sent' }, isLoginRefused: false };
  } catch (error) {
    if (!(error instanceof SmtpFailed)) throw error;
    return { result: resultOf(error, whereOf(deps)), isLoginRefused: isRefusedLogin(error) };
  } finally {
    session.end();
  }
}

const whereOf = ({ config: { smtp } }: WireDeps): string => `${smtp.host}:${smtp.port} (SMTP)`;
const isRefusedLogin = ({ isLogin, code }: SmtpFailed): boolean => isLogin && (code === undefined || code >= 500);

function resultOf(error: SmtpFailed, where: string): SendResult {
  const { phase, code, message, isTooLarge } = error;
  const text = `${where}: ${message}`;
  if (isTooLarge) return { is: 'rejected', kind: 'size', text };
  if (code !== undefined && code >= 500 && phase !== 'login') return { is: 'rejected', kind: kindOf(code, error), text };
  // An announcement that the server stops does not answer the mail.
  if (code === undefined || code === 421) return phase === 'text' ? { is: 'ambiguous', text } : { is: 'notSent', text };
  return phase === 'login' ? { is: 'notSent', text } : { is: 'notSent', text, retryAfterMs: laterMs };
}

/** Returns what a refusal is about, by its extended code (RFC 3463), or by its code and the refused command alone. */
function kindOf(code: number, { answer, command }: SmtpFailed): string {
  const [, subject, detail] = /^\d{3}[ -]5\.(\d{1,3})\.(\d{1,3})/.exec(answer) ?? [];
  if ((subject === '2' && detail === '3') || (subject === '3' && detail === '4')) return 'size';
  // A refused sender has a mailbox, too, which is not the one that the mail is for.
  if (subject === '1' || subject === '2') return command === 'MAIL FROM' ? 'policy' : 'mailbox';
  if (subject === '7') return 'policy';
  if (code === 552) return 'size';
  if (code === 550 || code === 551 || code === 553) return command === 'RCPT TO' ? 'mailbox' : 'policy';
  return code === 530 || code === 554 ? 'policy' : 'refused';
}
