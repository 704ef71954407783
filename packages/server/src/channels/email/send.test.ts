import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasMailServer, type MailServer, makeAuthority, makeCertificate, startMailServer } from '@gatehouse/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../kernel/clock.ts';
import type { WireClock } from '../port.ts';
import { createGates, letter, never } from './testing/gates.ts';

if (!hasMailServer()) console.warn('Tests of email are skipped: dovecot is not installed');

let mail: MailServer;
const { newUser, configOf, connect, open, sentTo, proxyTo, close } = createGates(() => mail);
const passed = 'dmarc=pass header.from=people.test';

const headerOf = ({ headers }: { readonly headers: readonly { readonly key: string; readonly value: string }[] }, name: string) =>
  headers.filter(({ key }) => key === name).map(({ value }) => value);

describe.skipIf(!hasMailServer())('with Dovecot', () => {
  beforeAll(async () => {
    mail = await startMailServer();
  });
  afterAll(() => mail[Symbol.asyncDispose]());
  afterEach(() => {
    mail.fault = undefined;
    return close();
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
      { at: 'end', code: 550, text: 'Looks like spam' },
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
    let expire = () => {};
    const clock: WireClock = { ...systemClock, after: (ms, run) => (ms === 300_000 ? ((expire = run), () => {}) : systemClock.after(ms, run)) };
    const gate = open(user, {}, clock);
    mail.fault = fault;
    const before = mail.received();
    const sending = gate.send({ conversationId: `${ada}@people.test` });
    if (fault === 'hang after the dot') {
      await expect.poll(() => mail.received()).toBe(before + 1);
      expire();
    }
    const sent = await sending;
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
  afterEach(close);

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
