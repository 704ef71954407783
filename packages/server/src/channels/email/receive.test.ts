import { hasMailServer, type MailServer, startMailServer } from '@gatehouse/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createGates, hurry, letter, never } from './testing/gates.ts';

if (!hasMailServer()) console.warn('Tests of email are skipped: dovecot is not installed');

let mail: MailServer;
const { newUser, configOf, connect, proxyTo, close } = createGates(() => mail);
const passed = 'dmarc=pass header.from=people.test';

describe.skipIf(!hasMailServer())('with Dovecot', () => {
  beforeAll(async () => {
    mail = await startMailServer();
  });
  afterAll(() => mail[Symbol.asyncDispose]());
  afterEach(close);

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
    await expect.poll(async () => (await mail.mails(user)).map(({ flags }) => flags)).toEqual(['', '']);
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
      isUnverified: false,
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
        clock: hurry((ms) => ms === 1_000),
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

  test('notices that nothing comes any more, connects again, and receives what was missed', async () => {
    const user = newUser();
    const proxy = await proxyTo(mail.imapPort);
    let isSilent = false;
    const clock = hurry((ms) => isSilent && ms === 15_000);
    const gate = await connect(user, { imap: { ...configOf(user).imap, port: proxy.port } }, { clock });
    const before = gate.proofs();
    await expect.poll(() => gate.proofs()).toBeGreaterThan(before + 1);
    proxy.stall();
    isSilent = true;
    await mail.deliver(user, letter({ subject: 'missed' }));
    expect(await gate.ended).toMatchObject({ ended: 'transient', text: expect.stringContaining('does not answer') });
    expect(gate.received).toEqual([]);
    isSilent = false;
    proxy.cut();
    proxy.resume();
    const again = gate.run();
    await again.connected;
    await expect.poll(() => gate.received.map(({ subject }) => subject)).toEqual(['missed']);
    proxy.cut();
    expect(await again.ended).toMatchObject({ ended: 'transient' });
  });
});
