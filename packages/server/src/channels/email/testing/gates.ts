import type { MailServer } from '@gatehouse/testkit';
import { type TcpProxy, startTcpProxy } from '@gatehouse/testkit/tcp-proxy';
import PostalMime from 'postal-mime';
import { systemClock } from '../../../kernel/clock.ts';
import type { Ended, OutgoingPart, ReceivedMessage, SendResult, WireClock } from '../../port.ts';
import { type EmailConfig, openEmail } from '../email.ts';

/** Returns a clock on which timers of some durations run after a moment; the others are those of the system. */
export const hurry = (isHurried: (ms: number) => boolean): WireClock => ({
  ...systemClock,
  after: (ms, run) => systemClock.after(isHurried(ms) ? 50 : ms, run),
});
export const never: AbortSignal = new AbortController().signal;

interface Watch {
  readonly cursor?: string | undefined;
  readonly take?: (messages: readonly ReceivedMessage[]) => Promise<void>;
  readonly clock?: WireClock;
}

interface Letter {
  readonly from?: string;
  readonly subject?: string;
  readonly id?: string | undefined;
  readonly body?: string;
  readonly headers?: readonly string[];
  readonly date?: string;
}

let letters = 0;
/** Returns a mail of Ada, unless it says otherwise. */
export function letter({
  from = 'Ada <Ada@People.test>',
  subject = 'Hello',
  id = `<m${(letters += 1)}@people.test>`,
  body = 'Hi',
  headers = [],
  date,
}: Letter = {}) {
  return [
    `From: ${from}`,
    'To: agent@gate.test',
    `Subject: ${subject}`,
    `Date: ${date ?? new Date().toUTCString()}`,
    ...(id === '' ? [] : [`Message-ID: ${id}`]),
    ...headers,
    ...(headers.some((one) => /^content-type:/i.test(one)) ? [] : ['Content-Type: text/plain; charset=utf-8']),
    '',
    body,
  ].join('\n');
}

/** Returns how the tests of a file open adapters for mailboxes of a server; `close` ends what a test has opened. */
export function createGates(mail: () => MailServer) {
  const closing: (() => unknown)[] = [];
  let names = 0;
  /** A mailbox that no other test uses. */
  const newUser = () => `agent${(names += 1)}`;

  function configOf(user: string, more: Partial<EmailConfig> = {}): EmailConfig {
    return {
      address: `${user}@gate.test`,
      name: 'Gate',
      imap: { host: '127.0.0.1', port: mail().imapPort, tls: false, user, password: 'pw' },
      smtp: { host: '127.0.0.1', port: mail().smtpPort, tls: false, user, password: 'pw' },
      mailbox: 'INBOX',
      markSeen: true,
      trustFrom: false,
      // Dovecot reports new mails half a second later.
      idleMs: 50,
      ...more,
    };
  }

  /** An adapter that is connected or whose connection ended, and what it received and logged. */
  async function connect(user: string, more: Partial<EmailConfig> = {}, { cursor, take = async () => {}, clock = systemClock }: Watch = {}) {
    const logged: object[] = [];
    const log = { debug: (fields: object) => void logged.push(fields), warn: (fields: object) => void logged.push(fields) };
    const adapter = openEmail({ config: configOf(user, more), clock, log });
    const received: ReceivedMessage[] = [];
    const cursors: (string | undefined)[] = [cursor];
    let proofs = 0;
    const run = () => {
      const stopping = new AbortController();
      const connected = Promise.withResolvers<string>();
      const ended: Promise<Ended> = adapter.run(stopping.signal, {
        cursor: cursors.at(-1),
        take: async (messages, next) => {
          await take(messages);
          received.push(...messages);
          cursors.push(next);
        },
        alive: () => (proofs += 1),
        connected: connected.resolve,
      });
      closing.push(() => (stopping.abort(), ended));
      return { ended, connected: Promise.race([connected.promise, ended.then(() => '')]), stop: () => (stopping.abort(), ended) };
    };
    const first = run();
    const name = await first.connected;
    let sends = 0;
    const send = (part: Partial<OutgoingPart> & { readonly conversationId: string }, key = `key ${(sends += 1)}`): Promise<SendResult> =>
      adapter.send({ text: 'An answer', ...part }, { key, signal: never });
    return { user, adapter, name, run, ...first, received, logged, cursors, send, proofs: () => proofs, cursor: () => cursors.at(-1) };
  }

  /** An adapter that is not connected: it sends all the same. */
  function open(user: string, more: Partial<EmailConfig> = {}, clock: WireClock = systemClock) {
    const adapter = openEmail({ config: configOf(user, more), clock, log: { debug() {}, warn() {} } });
    let sends = 0;
    const send = (part: Partial<OutgoingPart> & { readonly conversationId: string }, key = `key ${(sends += 1)}`): Promise<SendResult> =>
      adapter.send({ text: 'An answer', ...part }, { key, signal: never });
    return { adapter, send };
  }

  const sentTo = async (user: string) => Promise.all((await mail().mails(user)).map(async ({ raw }) => ({ raw, ...(await PostalMime.parse(raw)) })));

  async function proxyTo(port: number): Promise<TcpProxy> {
    const proxy = await startTcpProxy(port);
    closing.push(() => proxy[Symbol.asyncDispose]());
    return proxy;
  }

  const close = async () => {
    await Promise.all(closing.splice(0).map((end) => end()));
  };
  return { newUser, configOf, connect, open, sentTo, proxyTo, close };
}
