import { afterEach, expect, test } from 'vitest';
import { startRig, type Rig } from './testing.ts';

const rigs: Rig[] = [];
afterEach(async () => {
  for (const rig of rigs.splice(0)) await rig[Symbol.asyncDispose]();
});
async function start(...options: Parameters<typeof startRig>): Promise<Rig> {
  const rig = await startRig(...options);
  rigs.push(rig);
  return rig;
}
const never = new AbortController().signal;
const textsOf = ({ received }: { readonly received: readonly { readonly text: string }[] }) => received.map(({ text }) => text);

test('direct messages, channels and threads are apart, with who wrote and whether it is for us', async () => {
  const { fake, open } = await start();
  const [ada, robot] = [fake.person('ada'), fake.person('robot', { isBot: true })];
  const guild = fake.guild('lab');
  const channel = fake.channel(guild, 'general');
  const wire = open();
  void wire.run();
  await expect.poll(() => wire.names).toEqual(['gate']);
  // 1 Guilds, 512 messages of guilds, 4096 direct messages, 32768 the content.
  expect(fake.gateway.log).toEqual(['identify 37377']);
  const direct = fake.directChannel(ada);
  const thread = fake.thread(channel, 'side topic');
  const first = fake.write(ada, direct, 'hello');
  fake.write(ada, channel, 'nobody in particular');
  fake.write(ada, channel, `<@${fake.bot.id}> are you there?`, { mentionsBot: true });
  fake.write(robot, channel, 'beep');
  fake.write(ada, channel, 'by a hook', { webhook: true });
  fake.write(ada, channel, 'joined', { type: 7 });
  fake.write(ada, thread, 'in the thread', { mentionsBot: true });
  await expect.poll(() => wire.received).toHaveLength(6);
  const kind = ({ conversationId, threadId, conversationKind, isBot, mentionsUs, text }: (typeof wire.received)[number]) => ({
    at: `${conversationKind} ${conversationId}${threadId === undefined ? '' : ` ${threadId}`}`,
    isBot,
    mentionsUs,
    text,
  });
  expect(wire.received.map(kind)).toEqual([
    { at: `direct ${direct.id}`, isBot: false, mentionsUs: false, text: 'hello' },
    { at: `shared ${channel.id}`, isBot: false, mentionsUs: false, text: 'nobody in particular' },
    { at: `shared ${channel.id}`, isBot: false, mentionsUs: true, text: 'are you there?' },
    { at: `shared ${channel.id}`, isBot: true, mentionsUs: false, text: 'beep' },
    { at: `shared ${channel.id}`, isBot: true, mentionsUs: false, text: 'by a hook' },
    { at: `shared ${channel.id} ${thread.id}`, isBot: false, mentionsUs: true, text: 'in the thread' },
  ]);
  expect(wire.received[0]).toMatchObject({ eventKey: first, messageId: first, senderId: ada.id, senderName: 'ada' });
  // What the gateway announced needs no request.
  expect(fake.rest.requests.map(({ path }) => path)).toEqual(['/users/@me', '/gateway/bot']);
});

test('own messages are not received, an answer to one is for us', async () => {
  const { fake, open } = await start();
  const ada = fake.person('ada');
  const channel = fake.channel(fake.guild('lab'), 'general');
  const wire = open();
  void wire.run();
  await expect.poll(() => wire.names).toHaveLength(1);
  const sent = await wire.adapter.send({ conversationId: channel.id, text: 'mine' }, { key: 'k', signal: never });
  fake.write(ada, channel, 'to you', { replyTo: sent.is === 'sent' ? sent.platformId! : '' });
  await expect.poll(() => wire.received).toMatchObject([{ text: 'to you', mentionsUs: true }]);
});

test('edits and deletions name the message, previews of links do not count', async () => {
  const { fake, clock, open } = await start();
  const ada = fake.person('ada');
  const direct = fake.directChannel(ada);
  const wire = open();
  void wire.run();
  await expect.poll(() => wire.names).toHaveLength(1);
  const [one, two, three] = ['a', 'b', 'c'].map((text) => fake.write(ada, direct, text)) as [string, string, string];
  fake.unfurl(direct, one);
  clock.advance(1_000);
  fake.edit(direct, one, 'a, better');
  fake.remove(direct, one);
  fake.remove(direct, two, three);
  await expect.poll(() => wire.received).toHaveLength(7);
  expect(wire.received.slice(3)).toMatchObject([
    { edits: one, text: 'a, better', senderId: ada.id },
    { edits: one, isDeleted: true, conversationKind: 'direct', senderId: ada.id },
    { edits: two, isDeleted: true },
    { edits: three, isDeleted: true },
  ]);
  expect(new Set(wire.received.map(({ eventKey }) => eventKey)).size).toBe(7);
});

test('a pressed button is a message of who pressed it, and is acknowledged after it is stored', async () => {
  const { fake, open } = await start();
  const ada = fake.person('ada');
  const channel = fake.channel(fake.guild('lab'), 'general');
  const wire = open();
  void wire.run();
  await expect.poll(() => wire.names).toHaveLength(1);
  const buttons = [{ label: 'Approve', command: '/approve ap_1' }];
  const sent = await wire.adapter.send({ conversationId: channel.id, text: 'May I?', buttons }, { key: 'k', signal: never });
  const messageId = sent.is === 'sent' ? sent.platformId! : '';
  expect(fake.shown(channel)).toMatchObject([{ content: 'May I?', buttons: ['Approve'] }]);
  const press = fake.press(ada, channel, messageId, 'Approve');
  await expect.poll(() => wire.received).toMatchObject([{ text: '/approve ap_1', senderId: ada.id, eventKey: press, messageId, mentionsUs: true }]);
  await expect.poll(() => fake.acknowledged).toEqual([press]);
  wire.refuses = true;
  fake.press(ada, channel, messageId, 'Approve');
  await expect.poll(() => wire.ended()).toMatchObject({ ended: 'transient' });
  expect(fake.acknowledged).toEqual([press]);
});

test('a file is fetched by the message, also when its first address has expired', async () => {
  const { fake, open } = await start();
  const ada = fake.person('ada');
  const direct = fake.directChannel(ada);
  const wire = open();
  void wire.run();
  await expect.poll(() => wire.names).toHaveLength(1);
  const data = Buffer.from('the content');
  const id = fake.write(ada, direct, '', { files: [{ name: 'a.txt', type: 'text/plain', data }] });
  fake.write(ada, direct, '', { files: [{ name: 'v.ogg', type: 'audio/ogg', data }], isVoice: true });
  await expect.poll(() => wire.received).toHaveLength(2);
  const [file, voice] = wire.received.flatMap(({ attachments = [] }) => attachments);
  expect(file).toEqual({ ref: expect.stringContaining(`${direct.id}/${id}/`), name: 'a.txt', mediaType: 'text/plain', bytes: 11 });
  expect(voice).toMatchObject({ isVoice: true });
  fake.expireFiles();
  const { download } = wire.adapter;
  const fetched = await download!.call(wire.adapter, file!.ref, { signal: never });
  if (fetched.is !== 'opened') throw new Error(fetched.text);
  expect(Buffer.concat(await Array.fromAsync(fetched.stream))).toEqual(data);
  fake.remove(direct, id);
  expect(await download!.call(wire.adapter, file!.ref, { signal: never })).toMatchObject({ is: 'gone' });
  expect(await download!.call(wire.adapter, '../../users/@me', { signal: never })).toEqual({ is: 'gone', text: 'Not a file of Discord' });
});

test.each([
  'https://evil.test/a.txt',
  'http://cdn.discordapp.com/a.txt',
  'https://cdn.discordapp.com.evil.test/a.txt',
  'https://u@cdn.discordapp.com/a.txt',
  'http://127.0.0.1:1/a.txt',
])('a file is fetched only from Discord: %s', async (url) => {
  const { fake, open } = await start();
  const ada = fake.person('ada');
  const direct = fake.directChannel(ada);
  const id = fake.write(ada, direct, '', { files: [{ name: 'a.txt', type: 'text/plain', data: Buffer.from('x') }] });
  const author = { id: ada.id, username: 'ada' };
  const attachments = [{ id, filename: 'a.txt', size: 1, url }];
  const body = { id, channel_id: direct.id, author, timestamp: '2026-01-01T00:00:00Z', attachments };
  fake.rest.fail(/GET .*messages/, { status: 200, body });
  const wire = open();
  const ref = `${direct.id}/${id}/${id}`;
  expect(await wire.adapter.download!(ref, { signal: never })).toEqual({ is: 'unavailable', text: 'The file is not on a server of Discord' });
});

test('the order is kept when many messages come at once, and the channel is asked for once', async () => {
  const { fake, open } = await start();
  const ada = fake.person('ada');
  const channel = fake.channel(fake.guild('lab'), 'general');
  const thread = fake.thread(channel, 'side');
  const first = open();
  void first.run();
  await expect.poll(() => first.names).toHaveLength(1);
  await first.stop();
  for (let n = 0; n < 300; n += 1) fake.write(ada, n % 2 === 0 ? channel : thread, String(n));
  // A resumed session does not announce its channels again.
  const wire = open(first.cursors.at(-1));
  void wire.run();
  await expect.poll(() => wire.received).toHaveLength(300);
  expect(textsOf(wire)).toEqual(Array.from({ length: 300 }, (_, n) => String(n)));
  expect(new Set(wire.received.map(({ conversationId }) => conversationId))).toEqual(new Set([channel.id]));
  expect(wire.received[1]?.threadId).toBe(thread.id);
  expect(fake.rest.requests.filter(({ path }) => path === `/channels/${thread.id}`)).toHaveLength(1);
});
