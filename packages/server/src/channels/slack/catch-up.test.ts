import { expect, test } from 'vitest';
import { connect, passTime, startWorld } from './testing/connect.ts';
import { Tracker } from './tracker.ts';

const hourMs = 60 * 60_000;

test('what people wrote while nobody was connected is caught up, in order and once, in conversations and threads', async () => {
  const world = await startWorld();
  const { slack, clock } = world;
  const ada = slack.person('Ada');
  const lab = slack.channel('lab', 'channel', [ada]);
  const first = await connect(world);
  slack.write(ada, slack.im(ada), 'direct 1');
  const root = slack.write(ada, lab, '<@UBOT00001> channel 1');
  slack.write(ada, lab, '<@UBOT00001> thread 1', { threadTs: root });
  await expect.poll(() => slack.unacknowledged).toBe(0);
  await first.stop();
  clock.advance(60_000);
  slack.write(ada, slack.im(ada), 'direct 2');
  slack.write(ada, lab, 'channel 2');
  slack.write(ada, slack.im(ada), 'direct 3');
  slack.write(ada, lab, 'thread 2', { threadTs: root });
  const second = await connect(world, { cursor: first.cursors.at(-1) });
  slack.write(ada, slack.im(ada), 'direct 4');
  await expect.poll(() => second.received.map(({ text }) => text).toSorted()).toEqual(['channel 2', 'direct 2', 'direct 3', 'direct 4', 'thread 2']);
  expect(second.received.flatMap(({ text }) => (text.startsWith('direct') ? [text] : []))).toEqual(['direct 2', 'direct 3', 'direct 4']);
  // Slack sends again what nobody acknowledged.
  slack.repeat();
  await expect.poll(() => slack.unacknowledged).toBe(0);
  expect(second.received).toHaveLength(5);
  await second.stop();
  const third = await connect(world, { cursor: second.cursors.at(-1) });
  const reads = slack.callsOf('conversations.replies').length;
  await expect.poll(() => slack.callsOf('conversations.replies').length).toBeGreaterThanOrEqual(reads);
  slack.write(ada, lab, 'channel 3');
  await expect.poll(() => third.received.map(({ text }) => text)).toEqual(['channel 3']);
});

test('messages older than an hour are not caught up, nor those of conversations that are gone', async () => {
  const world = await startWorld();
  const { slack, clock } = world;
  const ada = slack.person('Ada');
  const [lab, gone] = [slack.channel('lab', 'channel', [ada]), slack.channel('gone', 'channel', [ada])];
  const first = await connect(world);
  for (const id of [lab, gone]) slack.write(ada, id, 'seen');
  await expect.poll(() => first.received).toHaveLength(2);
  await first.stop();
  slack.write(ada, lab, 'too old');
  slack.write(ada, gone, 'where we are not');
  slack.leave(gone);
  clock.advance(hourMs + 1_000);
  slack.write(ada, lab, 'recent');
  const second = await connect(world, { cursor: first.cursors.at(-1) });
  await expect.poll(() => second.received.map(({ text }) => text)).toEqual(['recent']);
  expect(second.cursors.at(-1)).not.toContain(gone);
});

test('a conversation that could not be caught up keeps its place in the cursor', async () => {
  const world = await startWorld();
  const { slack, clock } = world;
  const ada = slack.person('Ada');
  const first = await connect(world);
  slack.write(ada, slack.im(ada), 'one');
  await expect.poll(() => first.received).toHaveLength(1);
  await first.stop();
  slack.write(ada, slack.im(ada), 'two');
  slack.fault('conversations.history', ...Array.from({ length: 2 }, () => ({ is: 'limited', seconds: 7 }) as const));
  const second = await connect(world, { cursor: first.cursors.at(-1) });
  slack.write(ada, slack.im(ada), 'three');
  await expect.poll(() => second.received.map(({ text }) => text)).toEqual(['three']);
  expect(second.cursors.at(-1)).toBe(first.cursors.at(-1));
  await expect
    .poll(() => {
      clock.advance(7_000);
      return second.received.map(({ text }) => text);
    })
    .toEqual(['three', 'two']);
});

test('an adapter whose gateway keeps no cursor goes by what it has stored', async () => {
  const world = await startWorld();
  const { slack } = world;
  const ada = slack.person('Ada');
  const first = await connect(world);
  slack.write(ada, slack.im(ada), 'one');
  await expect.poll(() => slack.unacknowledged).toBe(0);
  slack.drop();
  await first.ended;
  slack.write(ada, slack.im(ada), 'two');
  const second = await connect(world, { opened: first });
  await expect.poll(() => second.received.map(({ text }) => text)).toEqual(['two']);
});

test('a connection without events is noticed once; plain silence is not', async () => {
  const world = await startWorld();
  const { slack } = world;
  const ada = slack.person('Ada');
  const first = await connect(world);
  slack.write(ada, slack.im(ada), 'heard');
  await expect.poll(() => first.received).toHaveLength(1);
  const probe = async () => {
    const reads = slack.callsOf('conversations.history').length;
    await passTime(world, 300_000);
    await expect.poll(() => slack.callsOf('conversations.history').length).toBe(reads + 1);
  };
  await probe();
  expect(slack.open).toBe(1);
  slack.withholdsEvents = true;
  slack.write(ada, slack.im(ada), 'withheld');
  await probe();
  expect(await first.ended).toEqual({ ended: 'transient', text: 'Slack did not report a message that its history has' });
  expect(first.received.map(({ text }) => text)).toEqual(['heard', 'withheld']);
  // It may be the subscription of the app: messages are taken, but the connection is not ended again and again.
  const second = await connect(world, { opened: first });
  await expect.poll(() => slack.callsOf('conversations.history').length).toBeGreaterThan(2);
  slack.write(ada, slack.im(ada), 'withheld again');
  await probe();
  await expect.poll(() => second.received.map(({ text }) => text)).toEqual(['withheld again']);
  expect([slack.open, second.warned.length]).toEqual([1, 1]);
});

test('the cursor is bounded, and one that cannot be read is none', () => {
  const tracker = new Tracker('{"conversations":{"C1":"nonsense"}}');
  for (let n = 0; n < 500; n += 1) {
    tracker.saw({ channel: `C${n}`, threadTs: undefined }, `${n + 1}.000000`, 'other');
    tracker.saw({ channel: `C${n}`, threadTs: `${n + 1}.000000` }, `${n + 1}.000001`, 'ours');
  }
  const cursor = tracker.toCursor();
  expect(Object.keys(JSON.parse(cursor).conversations)).toHaveLength(200);
  expect(Object.keys(JSON.parse(cursor).threads)).toHaveLength(100);
  expect(cursor.length).toBeLessThan(20_000);
  expect(new Tracker(cursor).toCursor()).toBe(cursor);
  expect(new Tracker('{').newest()).toBeUndefined();
});
