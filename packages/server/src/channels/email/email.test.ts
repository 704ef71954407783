import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasMailServer, type MailServer, makeAuthority, makeCertificate, startMailServer } from '@gatehouse/testkit';
import { type TcpProxy, startTcpProxy } from '@gatehouse/testkit/tcp-proxy';
import PostalMime from 'postal-mime';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../kernel/clock.ts';
import type { Ended, OutgoingPart, ReceivedMessage, SendResult, WireClock } from '../port.ts';
import { type EmailConfig, openEmail } from './email.ts';

if (!hasMailServer()) console.warn('Tests of email are skipped: dovecot is not installed');

const closing: (() => unknown)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

/** Timers run a hundred times as fast. */
const hurried: WireClock = { ...systemClock, after: (ms, run) => systemClock.after(ms / 100, run) };
/** Waits for the answer to a mail for a moment. */
const impatient: WireClock = { ...systemClock, after: (ms, run) => systemClock.after(ms === 300_000 ? 100 : ms, run) };
const never = new AbortController().signal;
const passed = 'dmarc=pass header.from=people.test';

let mail: MailServer;
let names = 0;
/** A mailbox that no other test uses. */
const newUser = () => `agent${(names += 1)}`;

interface Watch {
  readonly cursor?: string | undefined;
  readonly take?: (messages: readonly ReceivedMessage[]) => Promise<void>;
  readonly clock?: WireClock;
}

function configOf(user: string, more: Partial<EmailConfig> = {}): EmailConfig {
  return {
    address: `${user}@gate.test`,
    name: 'Gate',
    imap: { host: '127.0.0.1', port: mail.imapPort, tls: false, user, password: 'pw' },
    smtp: { host: '127.0.0.1', port: mail.smtpPort, tls: false, user, password: 'pw' },
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
  const runs: AbortController[] = [];
  const run = () => {
    const stopping = new AbortController();
    runs.push(stopping);
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
function letter({
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

const sentTo = async (user: string) => Promise.all((await mail.mails(user)).map(async ({ raw }) => ({ raw, ...(await PostalMime.parse(raw)) })));
const headerOf = ({ headers }: { readonly headers: readonly { readonly key: string; readonly value: string }[] }, name: string) =>
  headers.filter(({ key }) => key === name).map(({ value }) => value);

describe.skipIf(!hasMailServer())('with Dovecot', () => {
  beforeAll(async () => {
    mail = await startMailServer();
  });
  afterAll(() => mail[Symbol.asyncDispose]());
  afterEach(() => {
    mail.fault = undefined;
  });

  test('receives what arrives after the first connect, and marks it as read once it is stored', async () => {
    const user = newUser();
    await mail.deliver(user, letter({ subject: 'Old' }), { authentication: passed });
    const stored = Promise.withResolvers<void>();
    // Found by IDLE alone: nothing is asked for an hour.
    const gate = await connect(user, { idleMs: 3_600_000 }, { take: (messages) => (messages.length > 0 ? stored.promise : Promise.resolve()) });
    expect(gate.name).toBe(`${user}@gate.test`);
    await mail.deliver(
      user,
      letter({
        id: '<b@people.test>',
        subject: '=?utf-8?q?Gr=C3=BC=C3=9Fe?=',
        headers: ['References: <root@gate.test> <a@people.test>', 'In-Reply-To: <a@people.test>'],
      }),
      { authentication: passed },
    );
    expect((await mail.mails(user)).map(({ flags }) => flags)).toEqual(['', '']);
    stored.resolve();
    await expect.poll(() => gate.received).toHaveLength(1);
    expect(gate.received[0]).toEqual({
      eventKey: '<b@people.test> ada@people.test',
      messageId: '<b@people.test>',
      conversationId: 'ada@people.test',
      threadId: '<root@gate.test>',
      conversationKind: 'direct',
      senderId: 'ada@people.test',
      senderName: 'Ada',
      isBot: false,
      text: 'Hi',
      subject: 'Grüße',
      mentionsUs: true,
      sentAtMs: expect.any(Number),
    });
    await expect.poll(async () => (await mail.mails(user)).map(({ flags }) => flags)).toEqual(['', 'S']);
    await mail.deliver(user, letter({ subject: 'Next' }), { authentication: passed });
    await expect.poll(() => gate.received.map(({ subject }) => subject)).toEqual(['Grüße', 'Next']);
    expect(await gate.stop()).toEqual({ ended: 'stopped', text: 'Stopped' });
  });

  test('receives after downtime what arrived since, and nothing twice', async () => {
    const user = newUser();
    const gate = await connect(user, { markSeen: false });
    await mail.deliver(user, letter({ subject: 'one' }));
    await expect.poll(() => gate.received).toHaveLength(1);
    await gate.stop();
    for (let n = 2; n <= 26; n += 1) await mail.deliver(user, letter({ subject: `${n}`, from: `p${n}@people.test` }));
    const takes: number[] = [];
    const again = await connect(
      user,
      { markSeen: false },
      { cursor: gate.cursor(), take: async (messages) => void (messages.length > 0 && takes.push(messages.length)) },
    );
    await expect.poll(() => again.received.length).toBe(25);
    expect(again.received.map(({ subject }) => subject)).toEqual(Array.from({ length: 25 }, (_, n) => `${n + 2}`));
    expect(takes).toEqual([20, 5]);
    await again.stop();
    const third = await connect(user, {}, { cursor: again.cursor() });
    await mail.deliver(user, letter({ subject: 'last' }));
    await expect.poll(() => third.received.map(({ subject }) => subject)).toEqual(['last']);
    expect((await mail.mails(user)).filter(({ flags }) => flags === 'S')).toHaveLength(1);
  });

  test('stores a batch again that could not be stored, and acknowledges it only then', async () => {
    const user = newUser();
    let tries = 0;
    const gate = await connect(
      user,
      {},
      {
        clock: hurried,
        take: async (messages) => {
          if (messages.length > 0 && (tries += 1) < 3) throw new Error('The database is busy');
        },
      },
    );
    await mail.deliver(user, letter());
    await expect.poll(() => gate.received).toHaveLength(1);
    expect(tries).toBe(3);
    await expect.poll(async () => (await mail.mails(user)).map(({ flags }) => flags)).toEqual(['S']);
  });

  test('receives only newer mails when the mailbox was made again, and the same mail under the same key', async () => {
    const user = newUser();
    const gate = await connect(user);
    await mail.deliver(user, letter({ id: '<same@people.test>', subject: 'known' }));
    await mail.deliver(user, letter({ id: '', subject: 'known without an id' }));
    await expect.poll(() => gate.received).toHaveLength(2);
    expect(gate.received[1]?.eventKey).toMatch(/^\d+:2$/);
    await gate.stop();
    const old = new Date(Date.now() - 90 * 86_400_000).toUTCString();
    await mail.deliver(user, letter({ subject: 'copied with a new date of arrival', date: old }));
    await mail.deliver(user, letter({ subject: 'new' }));
    await mail.renumber(user);
    const again = await connect(user, {}, { cursor: gate.cursor() });
    await expect.poll(() => again.received.map(({ subject }) => subject)).toEqual(['new']);
    const validity = (text: string | undefined) => (JSON.parse(text ?? '') as { readonly validity: string }).validity;
    expect(validity(again.cursor())).not.toBe(validity(gate.cursor()));
    await mail.deliver(user, letter({ subject: 'newer' }));
    await expect.poll(() => again.received.map(({ subject }) => subject)).toEqual(['new', 'newer']);
    // Two copies of one mail have one key, as long as the sender is the same.
    await mail.deliver(user, letter({ id: '<same@people.test>' }));
    await mail.deliver(user, letter({ id: '<same@people.test>', from: 'eve@people.test' }));
    await expect.poll(() => again.received).toHaveLength(4);
    expect(again.received[2]?.eventKey).toBe(gate.received[0]?.eventKey);
    expect(again.received[3]?.eventKey).not.toBe(gate.received[0]?.eventKey);
  });

  test('knows who wrote by the check of the receiving server', async () => {
    const gate = await connect(newUser());
    const cases = [
      [undefined, false],
      ['dmarc=pass header.from=people.test', true],
      ['dmarc=pass header.from=evil.test', false],
      ['dmarc=fail header.from=people.test; dkim=pass header.d=people.test', false],
      ['spf=fail smtp.mailfrom=x.test; dkim=pass (2048-bit key) header.d=people.test', true],
      ['dkim=pass header.d=evil.test; spf=pass smtp.mailfrom=people.test', false],
    ] as const;
    // The sender wrote results, too.
    const forged = { headers: ['Authentication-Results: mx.test; dmarc=pass header.from=people.test'] };
    for (const [authentication] of cases)
      await mail.deliver(gate.user, letter(authentication === undefined ? {} : forged), authentication === undefined ? {} : { authentication });
    await expect.poll(() => gate.received).toHaveLength(cases.length);
    expect(gate.received.map(({ senderId }) => senderId)).toEqual(
      cases.map(([, isKnown]) => (isKnown ? 'ada@people.test' : 'unverified:ada@people.test')),
    );
    expect(new Set(gate.received.map(({ conversationId }) => conversationId))).toEqual(new Set(['ada@people.test']));
  });

  test('believes results of the configured server alone, and the From line only where that is configured', async () => {
    const user = newUser();
    const [own, trusting] = [await connect(user, { authServId: 'mx.gate.test' }), await connect(user, { trustFrom: true })];
    await mail.deliver(user, letter(), { authentication: passed });
    await expect.poll(() => own.received).toMatchObject([{ senderId: 'unverified:ada@people.test' }]);
    await expect.poll(() => trusting.received).toMatchObject([{ senderId: 'ada@people.test' }]);
    await mail.deliver(user, letter({ headers: ['Authentication-Results: MX.gate.test 1; dmarc=pass'] }), { authentication: passed });
    await expect.poll(() => own.received[1]?.senderId).toBe('ada@people.test');
  });

  test('passes over what nobody waits for an answer to', async () => {
    const user = newUser();
    const gate = await connect(user);
    const ignored: [string, string, { readonly returnPath?: string }?][] = [
      ['own', letter({ from: `${user}@GATE.test` })],
      ['automatic', letter({ headers: ['Auto-Submitted: auto-replied'] })],
      ['bulk', letter({ headers: ['Precedence: bulk'] })],
      ['bulk', letter({ headers: ['Precedence: junk'] })],
      ['list', letter({ headers: ['List-Id: <club.people.test>'] })],
      ['list', letter({ headers: ['List-Unsubscribe: <mailto:x@y.test>'] })],
      ['bounce', letter(), { returnPath: '' }],
      ['bounce', letter({ headers: ['Content-Type: multipart/report; boundary=x'], body: '--x\n\nfailed\n--x--' })],
      ['no_reply', letter({ from: 'No-Reply@people.test' })],
      ['no_reply', letter({ from: 'MAILER-DAEMON@people.test' })],
      ['no_author', letter({ from: 'ada@people.test, eve@people.test' })],
      ['no_author', letter({ headers: ['From: eve@people.test'] })],
      ['no_author', letter({ from: 'nobody' })],
    ];
    const expected = new Map<string, number>();
    for (const [reason, text, options] of ignored) {
      expected.set(reason, (expected.get(reason) ?? 0) + 1);
      await mail.deliver(user, text, options);
    }
    await mail.deliver(user, letter({ subject: 'Answer me', headers: ['Auto-Submitted: no'] }));
    await expect.poll(() => gate.received.map(({ subject }) => subject)).toEqual(['Answer me']);
    const counted = new Map<string, number>();
    for (const one of gate.logged) for (const [reason, count] of Object.entries(one)) counted.set(reason, (counted.get(reason) ?? 0) + Number(count));
    expect(counted).toEqual(expected);
    // They stay unread for a person.
    await expect.poll(async () => (await mail.mails(user)).filter(({ flags }) => flags === 'S')).toHaveLength(1);
  });

  test('receives ten mails of one sender an hour', async () => {
    const user = newUser();
    const gate = await connect(user);
    for (let n = 0; n < 12; n += 1) await mail.deliver(user, letter({ subject: `${n}` }));
    await mail.deliver(user, letter({ from: 'bob@people.test', subject: 'other' }));
    await expect.poll(() => gate.received.at(-1)?.subject).toBe('other');
    expect(gate.received).toHaveLength(11);
  });

  test('reads the text of HTML, of encodings, and only what the sender wrote', async () => {
    const user = newUser();
    const gate = await connect(user);
    const multi = (...parts: readonly string[]) => ({
      headers: ['MIME-Version: 1.0', 'Content-Type: multipart/alternative; boundary=cut'],
      body: `${parts.map((part) => `--cut\n${part}`).join('\n')}\n--cut--`,
    });
    const html =
      'Content-Type: text/html; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n<p>Gr=FC=DFe <b>aus</b> K=F6ln</p><div style=3D"display:none">hidden</div>';
    await mail.deliver(user, letter(multi('Content-Type: text/plain\n\n', html)));
    await mail.deliver(user, letter(multi('Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\nw6TDtsO8', html)));
    await mail.deliver(user, letter({ body: 'Yes.\n\nOn Mon, 1 Nov 2026 at 10:00, Gate <gate@gate.test>\nwrote:\n> Shall I?\n>\n> Gate\n' }));
    await mail.deliver(user, letter({ body: '> Shall I?\nYes.\n> And then?\nNo.\n-- \nAda\nPeople Ltd' }));
    await mail.deliver(user, letter({ subject: 'What time is it?', body: '' }));
    await expect
      .poll(() => gate.received.map(({ text }) => text))
      .toEqual(['Grüße aus Köln', 'äöü', 'Yes.', '> Shall I?\nYes.\n> And then?\nNo.', 'What time is it?']);
  });

  test('loads a file when it is asked for, also in a later process, and no other way', async () => {
    const user = newUser();
    const gate = await connect(user);
    const data = Buffer.from(Array.from({ length: 300_000 }, (_, n) => n % 251));
    await mail.deliver(
      user,
      letter({
        headers: ['MIME-Version: 1.0', 'Content-Type: multipart/mixed; boundary=cut'],
        body: `--cut\nContent-Type: text/plain\n\nSee below\n--cut\nContent-Type: application/pdf; name=x.pdf\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment; filename="../../r=?utf-8?q?=C3=A9?=sum.pdf"\n\n${data.toString('base64').replaceAll(/.{76}/g, '$&\n')}\n--cut--`,
      }),
    );
    await expect.poll(() => gate.received).toMatchObject([{ text: 'See below', attachments: [{ mediaType: 'application/pdf' }] }]);
    const file = gate.received[0]?.attachments?.[0];
    expect(file?.name).not.toMatch(/[/\\]/);
    expect(Math.abs((file?.bytes ?? 0) - data.length)).toBeLessThan(100);
    await gate.stop();
    const { adapter } = await connect(user, {}, { cursor: gate.cursor() });
    const load = async (ref: string) => {
      const opened = await adapter.download?.(ref, { signal: never });
      return opened?.is === 'opened' ? Buffer.concat(await Array.fromAsync(opened.stream)) : opened?.is;
    };
    expect(data.equals((await load(file?.ref ?? '')) as Buffer)).toBe(true);
    expect(await load('1:1:2')).toBe('gone');
    expect(await load((file?.ref ?? '').replace(/:\d+:/, ':99:'))).toBe('gone');
    expect(await load('1:1:2\r\nA LOGOUT')).toBe('gone');
  });

  test('reads the text of a mail of any size without its files', async () => {
    const user = newUser();
    const gate = await connect(user);
    const files = Array.from(
      { length: 4 },
      (_, n) => `--cut\nContent-Type: video/mp4; name=${n}.mp4\nContent-Transfer-Encoding: base64\n\n${`${'A'.repeat(76)}\n`.repeat(45_000)}`,
    );
    await mail.deliver(
      user,
      letter({
        headers: ['Content-Type: multipart/mixed; boundary=cut'],
        body: `--cut\nContent-Type: text/plain\n\nLarge\n${files.join('\n')}\n--cut--`,
      }),
    );
    await mail.deliver(user, letter({ from: 'bob@people.test', body: `${'long '.repeat(500_000)}` }));
    await expect
      .poll(() => gate.received.map(({ text, attachments = [] }) => [text.slice(0, 5), attachments.length]))
      .toEqual([
        ['Large', 4],
        ['long ', 0],
      ]);
    expect(gate.received[1]?.text.length).toBeLessThanOrEqual(200_000);
  });

  test('answers in the thread, with headers that no program answers', async () => {
    const [user, ada] = [newUser(), newUser()];
    const gate = await connect(user);
    await mail.deliver(
      user,
      letter({ from: `${ada}@people.test`, id: '<q1@people.test>', subject: 'RE: AW: Plans', headers: ['References: <root@people.test>'] }),
    );
    await expect.poll(() => gate.received).toHaveLength(1);
    const place = { conversationId: `${ada}@people.test`, threadId: '<root@people.test>' };
    const sent = await gate.send({ ...place, text: 'Plain\n.\n.dot', markup: '<p>Rich</p>' }, 'the key');
    expect(sent).toEqual({ is: 'sent', platformId: expect.stringMatching(/^<[0-9a-f]{40}@gate\.test>$/) });
    const [answer] = await sentTo(ada);
    expect(answer).toMatchObject({
      subject: 'Re: Plans',
      messageId: (sent as { platformId: string }).platformId,
      inReplyTo: '<q1@people.test>',
      text: 'Plain\n.\n.dot\n',
      html: '<p>Rich</p>\n',
    });
    expect(answer?.references?.split(/\s+/)).toEqual(['<root@people.test>', '<q1@people.test>']);
    expect(headerOf(answer ?? { headers: [] }, 'auto-submitted')).toEqual(['auto-replied']);
    expect(answer?.from).toEqual({ name: 'Gate', address: `${user}@gate.test` });
    // A later process finds the thread in the mailbox, and the same part has the same id.
    await gate.stop();
    const later = await connect(user, {}, { cursor: gate.cursor() });
    await later.send({ ...place, replyTo: '<other@people.test>' }, 'the key');
    await later.send({ conversationId: place.conversationId });
    const [, again, fresh] = await sentTo(ada);
    expect(again).toMatchObject({ subject: 'Re: Plans', inReplyTo: '<other@people.test>', messageId: answer?.messageId });
    expect(again?.references?.split(/\s+/)).toEqual(['<root@people.test>', '<q1@people.test>', '<other@people.test>']);
    expect(fresh).toMatchObject({ subject: 'Message from Gate' });
    expect(headerOf(fresh ?? { headers: [] }, 'auto-submitted')).toEqual(['auto-generated']);
  });

  test('sends a file', async () => {
    const [user, ada] = [newUser(), newUser()];
    const gate = open(user);
    const data = Buffer.from(Array.from({ length: 70_000 }, (_, n) => n % 256));
    const attachment = {
      kind: 'file' as const,
      name: 'Résumé "x"\r\nBcc: eve@evil.test.pdf',
      mediaType: 'application/pdf\r\nX-Evil: 1',
      bytes: data.length,
      read: async () => data,
    };
    expect(await gate.send({ conversationId: `${ada}@people.test`, attachment, text: 'Here' })).toMatchObject({ is: 'sent' });
    const [got] = await sentTo(ada);
    expect(got?.text).toBe('Here\n');
    expect(got?.attachments).toMatchObject([{ filename: 'Résumé _x_ Bcc: eve@evil.test.pdf', mimeType: 'application/octet-stream' }]);
    expect(data.equals(Buffer.from(got?.attachments[0]?.content as ArrayBuffer))).toBe(true);
    expect(await gate.send({ conversationId: `${ada}@people.test`, attachment: { ...attachment, bytes: 30_000_000 } })).toMatchObject({
      is: 'rejected',
      kind: 'size',
    });
    const unreadable = { ...attachment, read: () => Promise.reject(new Error('gone')) };
    expect(await gate.send({ conversationId: `${ada}@people.test`, attachment: unreadable })).toMatchObject({ is: 'notSent' });
    expect(await sentTo(ada)).toHaveLength(1);
  });

  test('nothing of a part becomes a header or a command', async () => {
    const [user, ada] = [newUser(), newUser()];
    const evil = [
      '\r\nBcc: eve@evil.test',
      '\nX-Evil: 1',
      '\rX-Evil: 1',
      '\u0000X-Evil: 1',
      '\u2028X-Evil: 1',
      '\r\n\r\nbody\r\n.\r\nMAIL FROM:<x@evil.test>',
      '=?utf-8?q?=0D=0AX-Evil:_1?=',
    ];
    const conversationId = `${ada}@people.test`;
    for (const text of evil) {
      const gate = open(user, { name: `Gate${text}` });
      await gate.send({
        conversationId,
        subject: `Hello${text}`,
        text: `Text${text}`,
        threadId: `<t@people.test>${text}`,
        replyTo: `<r@people.test>${text}`,
      });
      expect(await gate.send({ conversationId: `${conversationId}${text}` })).toMatchObject({ is: 'rejected', kind: 'target' });
    }
    const got = await sentTo(ada);
    expect(got).toHaveLength(evil.length);
    const known = [
      'return-path',
      'received',
      'from',
      'to',
      'subject',
      'message-id',
      'date',
      'auto-submitted',
      'x-auto-response-suppress',
      'content-type',
      'content-transfer-encoding',
      'mime-version',
    ];
    for (const one of got) {
      expect(one.headers.map(({ key }) => key).filter((key) => !known.includes(key))).toEqual([]);
      expect(one.to).toEqual([{ name: '', address: conversationId }]);
    }
    expect(await sentTo('eve')).toEqual([]);
  });

  test.each([
    [
      { at: 'recipient', code: 550, text: '5.1.1 No such user' },
      { is: 'rejected', kind: 'mailbox' },
    ],
    [
      { at: 'recipient', code: 450, text: '4.2.0 Greylisted' },
      { is: 'notSent', retryAfterMs: expect.any(Number) },
    ],
    [
      { at: 'end', code: 554, text: '5.7.1 Looks like spam' },
      { is: 'rejected', kind: 'policy' },
    ],
    [
      { at: 'end', code: 552, text: '5.3.4 Too large' },
      { is: 'rejected', kind: 'size' },
    ],
    [{ at: 'end', code: 451, text: '4.3.0 Try later' }, { is: 'notSent' }],
    ['cut before 354', { is: 'notSent' }],
    ['cut after the dot', { is: 'ambiguous' }],
    ['deliver and cut', { is: 'ambiguous' }],
    ['hang after the dot', { is: 'ambiguous' }],
  ] as const)('says by evidence what became of a mail: %j', async (fault, result) => {
    const [user, ada] = [newUser(), newUser()];
    const gate = open(user, {}, impatient);
    mail.fault = fault;
    const sent = await gate.send({ conversationId: `${ada}@people.test` });
    expect(sent).toMatchObject(result);
    expect(JSON.stringify(sent)).not.toContain('"pw"');
    expect(await sentTo(ada)).toHaveLength(fault === 'deliver and cut' ? 1 : 0);
  });

  test('a mail is not sent while the server can’t be reached, or the text was not asked for', async () => {
    const [user, ada] = [newUser(), newUser()];
    const proxy = await proxyTo(mail.smtpPort);
    const gate = await connect(user, { smtp: { ...configOf(user).smtp, port: proxy.port } });
    const held = proxy.holdOn('DATA');
    const sending = gate.send({ conversationId: `${ada}@people.test` });
    await held;
    proxy.cut();
    expect(await sending).toMatchObject({ is: 'notSent' });
    proxy.resume();
    proxy.refuse();
    expect(await gate.send({ conversationId: `${ada}@people.test` })).toMatchObject({ is: 'notSent' });
    proxy.accept();
    const muted = proxy.muteOn('\r\n.\r\n');
    const stopping = new AbortController();
    const lost = gate.adapter.send({ conversationId: `${ada}@people.test`, text: 'x' }, { key: 'lost', signal: stopping.signal });
    await muted;
    stopping.abort();
    expect(await lost).toMatchObject({ is: 'ambiguous' });
    expect(await gate.adapter.send({ conversationId: `${ada}@people.test`, text: 'x' }, { key: 'k', signal: stopping.signal })).toMatchObject({
      is: 'notSent',
    });
  });

  test('stores sent mails once, and finds them again', async () => {
    const [user, ada] = [newUser(), newUser()];
    await mail.makeFolder(user, 'Sent');
    const gate = await connect(user, { sentMailbox: 'Sent' });
    const part = { conversationId: `${ada}@people.test`, text: 'An answer' };
    const lookUp = (key: string, sinceMs = Date.now()) => gate.adapter.lookUp?.(part, { key, sinceMs, signal: never });
    expect(await gate.send(part, 'k1')).toMatchObject({ is: 'sent' });
    expect(await mail.mails(user, 'Sent')).toMatchObject([{ flags: 'S' }]);
    expect(await lookUp('k1')).toEqual({ is: 'found', platformId: expect.stringContaining('@gate.test') });
    expect(await lookUp('k2')).toMatchObject({ is: 'unclear', retry: true });
    expect(await lookUp('k2', Date.now() - 3_600_000)).toMatchObject({ is: 'unclear', retry: false });
    await gate.send(part, 'k1');
    expect(await mail.mails(user, 'Sent')).toHaveLength(1);
    const without = open(newUser());
    expect(await without.adapter.lookUp?.(part, { key: 'k1', sinceMs: 0, signal: never })).toMatchObject({ is: 'unclear' });
  });

  test('shows the last mails of a conversation, and acts on those of it alone', async () => {
    const user = newUser();
    for (const name of ['Sent', 'Archive']) await mail.makeFolder(user, name);
    const gate = await connect(user, { sentMailbox: 'Sent' });
    const at = (minutes: number) => new Date(Date.now() - minutes * 60_000).toUTCString();
    await mail.deliver(user, letter({ id: '<f1@people.test>', body: 'first', date: at(30) }), { authentication: passed });
    await mail.deliver(user, letter({ id: '<f2@people.test>', body: 'second', date: at(20) }));
    await mail.deliver(user, letter({ id: '<eve@people.test>', from: '"ada@people.test" <eve@people.test>', date: at(10) }));
    await expect.poll(() => gate.received).toHaveLength(3);
    await gate.send({ conversationId: 'ada@people.test', text: 'An answer' });
    const place = { conversationId: 'ada@people.test' };
    const fetch = (more: object = {}) => gate.adapter.fetch?.(place, { signal: never, limit: 10, ...more });
    expect(await fetch()).toMatchObject({
      is: 'done',
      value: [
        { senderId: `${user}@gate.test`, text: 'An answer' },
        { messageId: '<f2@people.test>', senderId: 'unverified:ada@people.test', text: 'second' },
        { messageId: '<f1@people.test>', senderId: 'ada@people.test', text: 'first' },
      ],
    });
    expect(await fetch({ before: '<f2@people.test>', limit: 1 })).toMatchObject({ value: [{ text: 'first' }] });
    expect(await fetch({ before: '<nothing@people.test>' })).toMatchObject({ is: 'failed', kind: 'not_found' });
    const act = (name: string, params: object) => gate.adapter.action?.(name, params as Record<string, unknown>, place, { signal: never });
    expect(await act('flag', { message_id: '<f1@people.test>' })).toEqual({
      is: 'done',
      value: { marked: true, message_id: '<f1@people.test>', flagged: true },
    });
    expect(await act('mark_read', { message_id: '<f1@people.test>', read: false })).toMatchObject({ is: 'done' });
    expect((await mail.mails(user))[0]?.flags).toBe('F');
    expect(await act('flag', { message_id: '<eve@people.test>' })).toMatchObject({ is: 'failed', kind: 'not_found' });
    expect(await act('flag', { message_id: 'x\r\n' })).toMatchObject({ is: 'failed', kind: 'invalid' });
    expect(await act('move', { message_id: '<f1@people.test>', mailbox: 'Nowhere' })).toMatchObject({ is: 'failed', kind: 'not_found' });
    expect(await act('move', { message_id: '<f1@people.test>', mailbox: 'Archive' })).toMatchObject({ is: 'done' });
    expect(await mail.mails(user, 'Archive')).toHaveLength(1);
  });

  test('passes over a mail that a connection fails at, and receives the next', async () => {
    const user = newUser();
    const gate = await connect(user, { maxResponseTokens: 5_000 });
    const parts = `${'--cut\nContent-Type: text/plain; name=a\n\nx\n'.repeat(900)}--cut--`;
    await mail.deliver(user, letter({ headers: ['Content-Type: multipart/mixed; boundary=cut'], body: parts }));
    await mail.deliver(user, letter({ subject: 'next' }));
    expect(await gate.ended).toMatchObject({ ended: 'transient', text: expect.stringContaining('TooManyTokens') });
    const again = gate.run();
    await again.connected;
    await expect.poll(() => gate.received.map(({ subject }) => subject)).toEqual(['next']);
    expect(gate.logged).toContainEqual({ uid: 1 });
  });

  test('a refused login ends the connection as unauthorized, also that of a send', async () => {
    const user = newUser();
    const { imap, smtp } = configOf(user);
    const wrong = await connect(user, { imap: { ...imap, password: 'wrong secret' } });
    expect(await wrong.ended).toMatchObject({ ended: 'unauthorized', text: expect.not.stringContaining('wrong secret') });
    const other = await connect(user, { smtp: { ...smtp, password: 'wrong secret' } });
    expect(await other.ended).toMatchObject({ ended: 'unauthorized', text: expect.not.stringContaining('wrong secret') });
    const missing = await connect(user, { mailbox: 'Nowhere' });
    expect(await missing.ended).toMatchObject({ ended: 'transient', text: expect.stringContaining('no such mailbox') });
    const gate = await connect(user);
    mail.password = 'changed';
    try {
      expect(await gate.send({ conversationId: 'ada@people.test' })).toMatchObject({ is: 'notSent' });
      expect(await gate.ended).toMatchObject({ ended: 'unauthorized' });
    } finally {
      mail.password = 'pw';
    }
  });

  test('notices that nothing comes any more, connects again, and receives what was missed', async () => {
    const user = newUser();
    const proxy = await proxyTo(mail.imapPort);
    const gate = await connect(user, { imap: { ...configOf(user).imap, port: proxy.port } }, { clock: hurried });
    const before = gate.proofs();
    await expect.poll(() => gate.proofs()).toBeGreaterThan(before + 1);
    proxy.stall();
    await mail.deliver(user, letter({ subject: 'missed' }));
    expect(await gate.ended).toMatchObject({ ended: 'transient', text: expect.stringContaining('does not answer') });
    expect(gate.received).toEqual([]);
    proxy.cut();
    proxy.resume();
    const again = gate.run();
    await again.connected;
    await expect.poll(() => gate.received.map(({ subject }) => subject)).toEqual(['missed']);
    proxy.cut();
    expect(await again.ended).toMatchObject({ ended: 'transient' });
  });
});

describe.skipIf(!hasMailServer())('with TLS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-email-'));
  const tlsCaPath = join(folder, 'ca.pem');
  let secure: MailServer;
  beforeAll(async () => {
    const authority = await makeAuthority('Test authority');
    writeFileSync(tlsCaPath, authority.cert);
    secure = await startMailServer({ tls: await makeCertificate('127.0.0.1', authority) });
    mail = secure;
  });
  afterAll(async () => {
    await secure[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  test('trusts the servers by the configured certificates alone', async () => {
    const login = { host: '127.0.0.1', tls: true, user: 'agent', password: 'pw' };
    const [imap, smtp] = [
      { ...login, port: secure.imapsPort },
      { ...login, port: secure.smtpsPort },
    ];
    const gate = await connect('agent', { imap, smtp, tlsCaPath });
    expect(gate.name).toBe('agent@gate.test');
    expect(await gate.send({ conversationId: 'ada@people.test' })).toMatchObject({ is: 'sent' });
    expect(await (await connect('agent', { imap, smtp })).ended).toMatchObject({
      ended: 'transient',
      text: expect.stringMatching(/IMAP.*CERT|IMAP.*SIGNATURE/),
    });
    expect(await open('agent', { imap, smtp }).send({ conversationId: 'ada@people.test' })).toMatchObject({ is: 'notSent' });
    const missing = await connect('agent', { imap, smtp, tlsCaPath: join(folder, 'none.pem') });
    expect(await missing.ended).toMatchObject({ ended: 'transient', text: expect.stringContaining('ENOENT') });
    // No TLS where it was asked for: nothing is sent in the clear.
    expect(await (await connect('agent', { imap: { ...imap, port: secure.imapPort }, smtp, tlsCaPath })).ended).toMatchObject({ ended: 'transient' });
    expect(
      await open('agent', { imap, smtp: { ...smtp, port: secure.smtpPort }, tlsCaPath }).send({ conversationId: 'ada@people.test' }),
    ).toMatchObject({
      is: 'notSent',
    });
  });
});

async function proxyTo(port: number): Promise<TcpProxy> {
  const proxy = await startTcpProxy(port);
  closing.push(() => proxy[Symbol.asyncDispose]());
  return proxy;
}
