import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createStepClock,
  hasMailServer,
  type MailServer,
  makeAuthority,
  makeCertificate,
  type SmtpServer,
  startMailServer,
  startSmtpServer,
  startTestServer,
  type TestServer,
  type TestServerOptions,
  whyNoSmtpServer,
} from '@gatehouse/testkit';
import { ImapFlow } from 'imapflow';
import { createTransport, type SendMailOptions } from 'nodemailer';
import PostalMime, { type Email } from 'postal-mime';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

const reason = hasMailServer() ? whyNoSmtpServer() : 'dovecot is not installed (Debian package dovecot-imapd)';
const gtube = 'XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X';
if (reason !== undefined) console.warn(`Tests of email with an SMTP server are skipped: ${reason}`);

describe.skipIf(reason !== undefined)('agents by email, sent with Exim and read with Dovecot', () => {
  let folder: string;
  let tlsCaPath: string;
  const host = '127.0.0.1';
  let ca: string;
  let mail: MailServer;
  let smtp: SmtpServer;
  let server: TestServer;
  let users = 0;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gatehouse-email-smtp-'));
    tlsCaPath = join(folder, 'ca.pem');
    const authority = await makeAuthority('Test authority');
    ca = authority.cert;
    writeFileSync(tlsCaPath, ca);
    mail = await startMailServer({ tls: await makeCertificate('mx.test', authority) });
    smtp = await startSmtpServer({ boxes: mail.boxes, makeTls: (address) => makeCertificate('mx.test', authority, {}, [address]) });
    for (const user of ['ada', 'greyson']) await mail.makeFolder(user, 'Sent');
  });
  afterAll(async () => {
    await smtp[Symbol.asyncDispose]();
    await mail[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });
  afterEach(() => server[Symbol.asyncDispose]());

  const stateOf = async () => (await server.client.call('channels.get', { channel_type: 'email' })).state;
  const startWith = async (wire: object, options: TestServerOptions = {}) => {
    const user = `gate${(users += 1)}`;
    await mail.makeFolder(user, 'Sent');
    const login = { host, user, password: 'pw' };
    server = await startTestServer({
      ...options,
      config: {
        agents: { default: { model: 'mock/mock-fast' } },
        channels: {
          post: {
            type: 'email' as const,
            address: `${user}@gate.test`,
            name: 'Gäte',
            imap: { ...login, port: mail.imapsPort },
            smtp: { ...login, port: smtp.tlsPort, ...wire },
            tlsCaPath,
            sentMailbox: 'Sent',
            // The SMTP server lets nobody write under the name of another user.
            trustFrom: true,
            dm: { policy: 'open' as const },
          },
        },
      },
    });
    return user;
  };
  const start = async (wire: object = {}, options: TestServerOptions = {}) => {
    const user = await startWith(wire, options);
    await expect.poll(stateOf).toBe('healthy');
    return user;
  };

  /** A person writes with a mail program. */
  async function write(person: string, letter: SendMailOptions): Promise<void> {
    const transport = createTransport({
      host: smtp.submissionHost,
      port: 587,
      requireTLS: true,
      tls: { ca },
      auth: { user: person, pass: 'pw' },
    });
    await transport.sendMail({ from: `${person}@people.test`, ...letter });
    transport.close();
  }

  /** Returns all mails of a person, read as a mail program reads them. */
  async function readMails(person: string): Promise<Email[]> {
    const imap = new ImapFlow({ host, port: mail.imapsPort, secure: true, tls: { ca }, auth: { user: person, pass: 'pw' }, logger: false });
    await imap.connect();
    try {
      await imap.mailboxOpen('INBOX');
      const found = await imap.fetchAll('1:*', { source: true });
      return await Promise.all(found.map(({ source }) => PostalMime.parse(source ?? '')));
    } finally {
      imap.close();
    }
  }
  const mailsFrom = async (person: string, user: string) => (await readMails(person)).filter(({ from }) => from?.address === `${user}@gate.test`);
  async function upload(fileName: string, bytes: Buffer): Promise<string> {
    const headers = { authorization: `Bearer ${server.token}` };
    const answer = await fetch(`${server.url}/media?fileName=${fileName}`, { method: 'POST', headers, body: bytes });
    return ((await answer.json()) as { readonly mediaId: string }).mediaId;
  }
  const deliveries = async () => (await server.client.call('delivery.list', { channel_instance_id: 'post' })).deliveries;

  test('a mail is answered in its thread after STARTTLS, and a file is sent', async () => {
    const user = await start({ host: smtp.submissionHost, port: 587 });
    const asked: string[] = [];
    server.provider.setAnswer(({ body }) => {
      asked.push(JSON.stringify(body));
      return { text: '„Grüezi“ aus Zürich, 東京 ✉️\n.\n..zwei' };
    });
    const file = Buffer.from(Array.from({ length: 70_000 }, (_, n) => (n * 7) % 256));
    await write('ada', {
      to: `${user}@gate.test`,
      subject: 'Pläne für Zürich – 計画',
      messageId: '<q1@people.test>',
      references: ['<root@people.test>'],
      text: 'Où est-ce qu’on se retrouve? 🙂',
      attachments: [{ filename: 'Résumé.bin', content: file, contentType: 'application/octet-stream' }],
    });
    await expect.poll(() => mail.mails('ada')).toHaveLength(1);
    expect(asked[0]).toContain('Où est-ce qu’on se retrouve? 🙂');
    const [answer] = await mailsFrom('ada', user);
    expect(answer).toMatchObject({
      subject: 'Re: Pläne für Zürich – 計画',
      from: { name: 'Gäte', address: `${user}@gate.test` },
      to: [{ name: '', address: 'ada@people.test' }],
      inReplyTo: '<q1@people.test>',
      returnPath: `${user}@gate.test`,
      text: '„Grüezi“ aus Zürich, 東京 ✉️\n.\n..zwei\n',
    });
    expect(answer?.references?.split(/\s+/)).toEqual(['<root@people.test>', '<q1@people.test>']);
    const headers = (name: string) => answer?.headers.filter(({ key }) => key === name).map(({ value }) => value);
    expect(headers('received')).toEqual([expect.stringMatching(/by mx\.test with esmtpsa\b/)]);
    expect(headers('message-id')).toHaveLength(1);
    await expect.poll(async () => (await deliveries()).map(({ state }) => state)).toEqual(['accepted']);

    const [message] = (await server.client.call('channels.messages', {})).messages;
    if (message === undefined) throw new Error('no message');
    const id = await upload('R%C3%A9sum%C3%A9.bin', file);
    const { receipt } = await server.client.call('message.attach', { endpoint: message.endpoint, attachment_url: id });
    await expect.poll(() => mail.mails('ada')).toHaveLength(2);
    const [, attached] = await mailsFrom('ada', user);
    expect(attached).toMatchObject({
      subject: 'Re: Pläne für Zürich – 計画',
      inReplyTo: '<q1@people.test>',
      attachments: [{ filename: 'Résumé.bin', mimeType: 'application/octet-stream' }],
    });
    expect(file.equals(Buffer.from(attached?.attachments[0]?.content as ArrayBuffer))).toBe(true);
    expect(receipt).toEqual({ kind: 'tracked', messageId: attached?.messageId });
    // What is in the mailbox of sent mails is what was sent.
    expect((await mail.mails(user, 'Sent')).map(({ raw }) => /^message-id: (<.*>)/im.exec(raw)?.[1])).toEqual([
      answer?.messageId,
      attached?.messageId,
    ]);
  });

  test('a mail that the server refuses is rejected, by what is refused', async () => {
    const user = await start();
    server.provider.setAnswer(({ body }) => ({ text: JSON.stringify(body).includes('Spam, please') ? gtube : 'Hello' }));
    const ends = async () => (await deliveries()).map(({ state, errorKind, error }) => [state, errorKind, error?.replace(/.*SMTP\): /, '')]);
    await mail.deliver(user, `From: nobody@people.test\nTo: ${user}@gate.test\nMessage-ID: <n1@people.test>\n\nHello\n`);
    await expect.poll(ends).toEqual([['rejected', 'mailbox', '550 No such user here']]);
    await write('ada', { to: `${user}@gate.test`, text: 'Spam, please' });
    await expect.poll(async () => (await ends())[0]).toEqual(['rejected', 'policy', '550 Looks like spam']);
    const [message] = (await server.client.call('channels.messages', {})).messages;
    if (message === undefined) throw new Error('no message');
    const id = await upload('large.bin', Buffer.alloc(smtp.maxBytes));
    await server.client.call('message.attach', { endpoint: message.endpoint, attachment_url: id });
    await expect.poll(async () => (await ends())[0]).toEqual(['rejected', 'size', expect.any(String)]);
    expect(await mailsFrom('ada', user)).toEqual([]);
  });

  test('a greylisted mail is sent again after its time, once', async () => {
    const clock = createStepClock();
    const user = await start({}, { clock });
    server.provider.setAnswer(() => ({ text: 'At last' }));
    await write('greyson', { to: `${user}@gate.test`, subject: 'Plans', messageId: '<g1@people.test>', text: 'Hello' });
    const states = async () => (await deliveries()).map(({ state, error }) => [state, error]);
    await expect.poll(states).toEqual([['pending', expect.stringContaining('451 4.7.1 Greylisted')]]);
    clock.advance(119_000);
    expect(await mail.mails('greyson')).toEqual([]);
    await expect.poll(async () => (clock.advance(1_000), (await states())[0]?.[0])).toBe('accepted');
    await expect.poll(() => mailsFrom('greyson', user)).toMatchObject([{ text: 'At last\n', inReplyTo: '<g1@people.test>' }]);
  });

  test.each([
    ['a wrong password', { password: 'wrong secret' }, '535 Incorrect authentication data'],
    ['a login over a connection without TLS', { tls: false }, '503 AUTH command used when not advertised'],
  ] as const)('%s is unauthorized', async (_name, wire, answer) => {
    await startWith({ ...wire, ...('tls' in wire && { port: smtp.port }) });
    await expect.poll(stateOf).toBe('unauthorized');
    const { channels } = await server.client.call('channels.health', {});
    const error = channels.find(({ channelInstanceId }) => channelInstanceId === 'post')?.error;
    expect(error).toMatch(new RegExp(`SMTP\\) refuses the login: ${answer}$`));
    expect(error).not.toContain('wrong secret');
  });

  test('a sender that did not log in is refused, not the recipient', async () => {
    const user = await start({ user: undefined, password: undefined });
    await write('ada', { to: `${user}@gate.test`, text: 'Hello' });
    await expect
      .poll(deliveries)
      .toMatchObject([{ state: 'rejected', errorKind: 'policy', error: expect.stringContaining('550 Authentication required') }]);
  });
});
