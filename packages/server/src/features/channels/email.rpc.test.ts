import { hasMailServer, type MailServer, startMailServer, startTestServer, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

if (!hasMailServer()) console.warn('Tests of email are skipped: dovecot is not installed');

type Channels = NonNullable<NonNullable<TestServerOptions['config']>['channels']>;
type Mail = Awaited<ReturnType<MailServer['mails']>>[number];

const authentication = 'dmarc=pass header.from=people.test';
const fieldOf = ({ raw }: Mail, name: string) => new RegExp(`^${name}: (.*(?:\r\n[ \t].*)*)`, 'im').exec(raw)?.[1]?.replaceAll(/\s+/g, ' ');
const bodyOf = ({ raw }: Mail) => raw.slice(raw.indexOf('\r\n\r\n')).replaceAll('=\r\n', '').trim();

describe.skipIf(!hasMailServer())('agents by email', () => {
  let mail: MailServer;
  let server: TestServer;
  let users = 0;
  beforeAll(async () => {
    mail = await startMailServer();
  });
  afterAll(() => mail[Symbol.asyncDispose]());
  afterEach(async () => {
    mail.fault = undefined;
    await server[Symbol.asyncDispose]();
  });

  const stateOf = async () => (await server.client.call('channels.get', { channel_type: 'email' })).state;
  const start = async (more: Partial<Extract<Channels[string], { type: 'email' }>> = {}, options: TestServerOptions = {}) => {
    const user = `gate${(users += 1)}`;
    const imap = { host: '127.0.0.1', port: mail.imapPort, tls: false, user, password: 'pw' };
    const smtp = { ...imap, port: mail.smtpPort };
    server = await startTestServer({
      ...options,
      config: {
        agents: { default: { model: 'mock/mock-fast' } },
        channels: { post: { type: 'email' as const, address: `${user}@gate.test`, name: 'Gate', imap, smtp, ...more } },
        ...options.config,
      },
    });
    await expect.poll(stateOf).toBe('healthy');
    return user;
  };
  const write = (user: string, { from = 'ada', id, text, more = '' }: { from?: string; id: string; text: string; more?: string }, isChecked = true) =>
    mail.deliver(
      user,
      `From: Ada <${from}@people.test>\nTo: ${user}@gate.test\nSubject: Plans\nMessage-ID: <${id}@people.test>\n${more}\n${text}\n`,
      isChecked ? { authentication } : {},
    );

  test('a stranger gets a code by mail, is approved with it, and is answered in the thread', async () => {
    const user = await start();
    const asked: string[] = [];
    server.provider.setAnswer(({ body }) => {
      asked.push(JSON.stringify(body));
      return { text: 'We *meet* at ten.' };
    });
    await write(user, { id: 'q1', text: 'Hello?' });
    await expect.poll(() => mail.mails('ada')).toHaveLength(1);
    const [request] = await mail.mails('ada');
    const code = /: ([A-Z2-9]{8})/.exec(bodyOf(request as Mail))?.[1] ?? '';
    expect(asked).toEqual([]);
    expect(request && [fieldOf(request, 'subject'), fieldOf(request, 'in-reply-to'), fieldOf(request, 'auto-submitted')]).toEqual([
      'Re: Plans',
      '<q1@people.test>',
      'auto-replied',
    ]);
    expect(await server.client.call('channels.pair', { code, person: 'ada' })).toMatchObject({ senderId: 'ada@people.test', person: 'ada' });
    await expect.poll(() => mail.mails('ada')).toHaveLength(2);
    const sent = fieldOf(request as Mail, 'message-id');
    await write(user, { id: 'q2', text: 'When do we meet?', more: `In-Reply-To: ${sent}\nReferences: <q1@people.test> ${sent}\n` });
    await expect.poll(() => mail.mails('ada')).toHaveLength(3);
    const answer = (await mail.mails('ada'))[2] as Mail;
    expect(asked).toHaveLength(1);
    expect(asked[0]).toContain('When do we meet?');
    expect(bodyOf(answer)).toContain('at ten.');
    expect(fieldOf(answer, 'subject')).toBe('Re: Plans');
    expect(fieldOf(answer, 'from')).toBe(`Gate <${user}@gate.test>`);
    expect(fieldOf(answer, 'in-reply-to')).toBe('<q2@people.test>');
    expect(fieldOf(answer, 'references')).toBe(`<q1@people.test> ${sent} <q2@people.test>`);
    // Who writes as Ada without the check of the server is somebody else.
    await write(user, { id: 'forged', text: 'Send me the plans' }, false);
    await expect
      .poll(async () => (await server.client.call('channels.messages', {})).messages[0])
      .toMatchObject({
        senderId: 'unverified:ada@people.test',
        verdict: 'not_allowed',
      });
    expect(asked).toHaveLength(1);
    expect(await mail.mails('ada')).toHaveLength(3);
  });

  test('a mail that comes twice is answered once, and a forged owner is none', async () => {
    const user = await start({ dm: { policy: 'allowlist', allowFrom: ['bea@people.test'] }, owners: ['owner@people.test'] });
    server.provider.setAnswer(() => ({ text: 'Once.' }));
    await write(user, { from: 'owner', id: 'o1', text: 'Do it' }, false);
    await write(user, { from: 'bea', id: 'b1', text: 'Hi' });
    await write(user, { from: 'bea', id: 'b1', text: 'Hi' });
    await write(user, { from: 'bea', id: 'b2', text: 'Bye' });
    await expect.poll(() => mail.mails('bea')).toHaveLength(2);
    const { messages } = await server.client.call('channels.messages', {});
    expect(messages.map(({ senderId, verdict }) => [senderId, verdict])).toEqual([
      ['bea@people.test', 'turn'],
      ['bea@people.test', 'turn'],
      ['unverified:owner@people.test', 'not_allowed'],
    ]);
  });

  test('a mail that the server refuses is rejected, one that may have been sent is unknown, and passwords are never shown', async () => {
    const user = await start({ dm: { policy: 'open' } });
    server.provider.setAnswer(() => ({ text: 'An answer' }));
    const states = async () =>
      (await server.client.call('delivery.list', { channel_instance_id: 'post' })).deliveries.map(({ state, errorKind }) => [state, errorKind]);
    mail.fault = { at: 'recipient', code: 550, text: '5.1.1 No such user' };
    await write(user, { from: 'cleo', id: 'c1', text: 'Hi' });
    await expect.poll(states).toEqual([['rejected', 'mailbox']]);
    mail.fault = 'deliver and cut';
    await write(user, { from: 'dora', id: 'd1', text: 'Hi' });
    await expect.poll(states).toEqual([
      ['unknown', 'unconfirmed'],
      ['rejected', 'mailbox'],
    ]);
    expect(await mail.mails('dora')).toHaveLength(1);
    expect(JSON.stringify(await server.client.call('config.get', {}))).not.toContain('"pw"');
  });
});
