import { expect, test } from 'vitest';
import { connect, never, open, startWorld } from './testing/connect.ts';

test('a person writes directly: a message with plain text, the name, and one event key', async () => {
  const world = await startWorld();
  const { slack, clock } = world;
  const { name, received } = await connect(world);
  expect(name).toBe('gate');
  const ada = slack.person('Ada');
  const ts = slack.write(ada, slack.im(ada), 'a &lt;b&gt; &amp;amp; <https://x.test/|x> <@UBOT00001> <!here>');
  await expect.poll(() => received).toHaveLength(1);
  expect(received).toEqual([
    {
      eventKey: `${slack.im(ada)}:${ts}`,
      messageId: ts,
      conversationId: slack.im(ada),
      conversationKind: 'direct',
      senderId: ada,
      senderName: 'Ada',
      isBot: false,
      text: 'a <b> &amp; x (https://x.test/) @gate @here',
      mentionsUs: true,
      sentAtMs: clock.now(),
    },
  ]);
  await expect.poll(() => slack.unacknowledged).toBe(0);
});

test('a mention comes as two events and is one message, without the leading mention', async () => {
  const world = await startWorld();
  const { slack } = world;
  const { received } = await connect(world);
  const ada = slack.person('Ada');
  const lab = slack.channel('lab', 'channel', [ada]);
  slack.write(ada, lab, 'nobody in particular');
  slack.write(ada, lab, ' <@UBOT00001>: are you there, <@UBOT00001>?');
  await expect.poll(() => slack.unacknowledged).toBe(0);
  expect(received.map(({ text, mentionsUs, conversationKind }) => [text, mentionsUs, conversationKind])).toEqual([
    ['nobody in particular', false, 'shared'],
    ['are you there, @gate?', true, 'shared'],
  ]);
});

test('our own messages and those that nobody wrote are not passed on; those of bots are marked', async () => {
  const world = await startWorld();
  const { slack } = world;
  const { received, send } = await connect(world);
  const lab = slack.channel('lab');
  const robot = slack.person('Robot', { isBot: true });
  expect(await send({ conversationId: lab, text: 'from us' })).toMatchObject({ is: 'sent' });
  slack.join(slack.person('Eve'), lab);
  slack.write(robot, lab, 'beep');
  await expect.poll(() => slack.unacknowledged).toBe(0);
  expect(received).toMatchObject([{ senderId: robot, isBot: true, text: 'beep' }]);
});

test('an answer in a thread of ours, or one that we wrote in, is for us', async () => {
  const world = await startWorld();
  const { slack } = world;
  const first = await connect(world);
  const ada = slack.person('Ada');
  const lab = slack.channel('lab', 'channel', [ada]);
  const sent = await first.send({ conversationId: lab, text: 'our thread' });
  const ours = sent.is === 'sent' ? sent.platformId! : '';
  const theirs = slack.write(ada, lab, 'their thread');
  slack.write(ada, lab, 'to us', { threadTs: ours });
  slack.write(ada, lab, 'to others', { threadTs: theirs });
  await expect.poll(() => first.received.map(({ text }) => text)).toEqual(['their thread', 'to us', 'to others']);
  await first.send({ conversationId: lab, text: 'we say something', threadId: theirs });
  await expect.poll(() => slack.unacknowledged).toBe(0);
  // It is known in the next process too.
  await first.stop();
  const { received } = await connect(world, { cursor: first.cursors.at(-1) });
  slack.write(ada, lab, 'to us as well', { threadTs: theirs });
  await expect.poll(() => received.map(({ text }) => text)).toEqual(['to us as well']);
  expect([...first.received, ...received].map(({ threadId, mentionsUs }) => [threadId, mentionsUs])).toEqual([
    [undefined, false],
    [ours, true],
    [theirs, false],
    [theirs, true],
  ]);
});

test('people of another workspace in a shared channel have its id in theirs, in events and in what is caught up', async () => {
  const world = await startWorld();
  const { slack } = world;
  const ada = slack.person('Ada', { workspace: 'T99' });
  const lab = slack.channel('shared', 'channel', [ada]);
  const first = await connect(world);
  slack.write(ada, lab, 'live');
  await expect.poll(() => first.received.map(({ senderId }) => senderId)).toEqual([`T99:${ada}`]);
  await first.stop();
  slack.write(ada, lab, 'missed');
  const { received } = await connect(world, { cursor: first.cursors.at(-1) });
  await expect.poll(() => received.map(({ senderId, text }) => [senderId, text])).toEqual([[`T99:${ada}`, 'missed']]);
});

test('edits and deletions name the message; a preview is not an edit', async () => {
  const world = await startWorld();
  const { slack } = world;
  const { received } = await connect(world);
  const ada = slack.person('Ada');
  const im = slack.im(ada);
  const ts = slack.write(ada, im, 'first');
  slack.unfurl(im, ts);
  slack.edit(im, ts, 'second');
  slack.edit(im, ts, 'third');
  slack.remove(im, ts);
  await expect.poll(() => slack.unacknowledged).toBe(0);
  expect(received.map(({ text, edits, isDeleted, messageId, senderId }) => [text, edits, isDeleted, messageId, senderId])).toEqual([
    ['first', undefined, undefined, ts, ada],
    ['second', ts, undefined, ts, ada],
    ['third', ts, undefined, ts, ada],
    ['', ts, true, ts, ada],
  ]);
  expect(new Set(received.map(({ eventKey }) => eventKey)).size).toBe(4);
});

test('a pressed button is a message of the person who pressed', async () => {
  const world = await startWorld();
  const { slack } = world;
  const { received, send } = await connect(world);
  const ada = slack.person('Ada');
  const lab = slack.channel('lab', 'channel', [ada]);
  const root = slack.write(ada, lab, 'ask me');
  const sent = await send({ conversationId: lab, threadId: root, text: 'Sure?', buttons: [{ label: 'Yes', command: '/approve 1' }] });
  if (sent.is !== 'sent') throw new Error('not sent');
  expect(slack.seen(lab, root).at(-1)).toMatchObject({ text: 'Sure?', buttons: [{ label: 'Yes', value: '/approve 1' }] });
  slack.press(ada, lab, sent.platformId!, '/approve 1');
  slack.press(ada, lab, sent.platformId!, '/approve 1');
  await expect.poll(() => received.length).toBe(3);
  expect(received[1]).toMatchObject({ senderId: ada, senderName: 'Ada', text: '/approve 1', threadId: root, mentionsUs: true, isBot: false });
  expect(received[1]?.eventKey).not.toBe(received[2]?.eventKey);
  await expect.poll(() => slack.unacknowledged).toBe(0);
});

test('a file is fetched by its id, with the token for hosts of Slack only', async () => {
  const world = await startWorld();
  const { slack } = world;
  const { adapter, received } = await connect(world);
  const ada = slack.person('Ada');
  const bytes = Buffer.alloc(200_000, 'x');
  slack.write(ada, slack.im(ada), '', { file: { name: 'voice.m4a', mediaType: 'audio/mp4', bytes, isVoice: true } });
  await expect.poll(() => received).toHaveLength(1);
  expect(received[0]?.attachments).toEqual([
    { ref: slack.fileId('voice.m4a'), name: 'voice.m4a', mediaType: 'audio/mp4', bytes: 200_000, isVoice: true },
  ]);
  const opened = await adapter.download!(slack.fileId('voice.m4a'), { signal: never });
  if (opened.is !== 'opened') throw new Error(opened.text);
  expect(Buffer.concat(await Array.fromAsync(opened.stream)).equals(bytes)).toBe(true);
  expect(await adapter.download!('F0', { signal: never })).toMatchObject({ is: 'gone' });
  expect(await adapter.download!('../x', { signal: never })).toMatchObject({ is: 'gone' });
  slack.fault('files.info', { is: 'status', status: 503 });
  expect(await adapter.download!(slack.fileId('voice.m4a'), { signal: never })).toMatchObject({ is: 'unavailable' });
});

test('a file that cannot be fetched is unavailable or gone, and the token goes nowhere else', async () => {
  const world = await startWorld();
  const { slack, clock } = world;
  const { adapter } = open(world);
  const ada = slack.person('Ada');
  slack.write(ada, slack.im(ada), '', { file: { name: 'a.txt', mediaType: 'text/plain', bytes: Buffer.from('a') } });
  const ref = slack.fileId('a.txt');
  const download = (signal = never) => adapter.download!(ref, { signal });
  slack.fault('file', { is: 'page', text: '<html>Log in</html>' }, { is: 'status', status: 500 }, { is: 'status', status: 404 }, { is: 'cutBefore' });
  expect(await download()).toMatchObject({ is: 'unavailable', text: expect.stringContaining('a page to log in') });
  expect(await download()).toMatchObject({ is: 'unavailable' });
  expect(await download()).toMatchObject({ is: 'gone' });
  expect(await download()).toMatchObject({ is: 'unavailable' });
  slack.fault('file', { is: 'hang' });
  const waits = clock.pending();
  const hanging = download();
  await expect.poll(() => clock.pending()).toBeGreaterThan(waits);
  await expect
    .poll(() => {
      clock.advance(1_000);
      return Promise.race([hanging, Promise.resolve(undefined)]);
    })
    .toMatchObject({ is: 'unavailable' });
  const info = (file: object) => ({ is: 'page', text: JSON.stringify({ ok: true, file }) }) as const;
  slack.fault('files.info', info({ url_private: 'http://127.0.0.1:9/x' }), info({ url_private: `${slack.url}/files/${ref}`, size: 2 ** 31 }));
  expect(await download()).toEqual({ is: 'gone', text: 'The file is kept outside of Slack' });
  expect(await download()).toMatchObject({ is: 'gone', text: expect.stringContaining('larger') });
});

test('an envelope is acknowledged after its message is stored, and what cannot be stored is tried again', async () => {
  const world = await startWorld();
  const { slack, clock } = world;
  const storing = Promise.withResolvers<void>();
  let takes = 0;
  const { received, warned } = await connect(world, {
    take: async () => {
      takes += 1;
      if (takes === 1) throw new Error('busy');
      await storing.promise;
    },
  });
  const ada = slack.person('Ada');
  slack.write(ada, slack.im(ada), 'one');
  await expect.poll(() => warned.length).toBe(1);
  slack.repeat();
  expect(slack.unacknowledged).toBe(1);
  await expect
    .poll(() => {
      clock.advance(1_000);
      return takes;
    })
    .toBe(2);
  expect([slack.unacknowledged, received.length]).toEqual([1, 0]);
  storing.resolve();
  await expect.poll(() => slack.unacknowledged).toBe(0);
  expect(received).toHaveLength(1);
});

test('without the scope for names a person is known by the id', async () => {
  const world = await startWorld();
  const { slack } = world;
  slack.fault('users.info', { is: 'error', error: 'missing_scope' });
  const { received } = await connect(world);
  const [ada, eve] = [slack.person('Ada'), slack.person('Eve')];
  slack.write(ada, slack.im(ada), 'hi');
  await expect.poll(() => received.map(({ senderName }) => senderName)).toEqual([ada]);
  slack.write(eve, slack.im(eve), 'hi');
  await expect.poll(() => received.map(({ senderName }) => senderName)).toEqual([ada, eve]);
  expect(slack.callsOf('users.info')).toHaveLength(1);
});
