import { QuietHours } from '@gatehouse/contract';
import { createStepClock, type StepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { irc } from '../channels/irc/platform.ts';
// Loaded when something is first sent.
import '../channels/render/render.ts';
import type { Adapter } from '../channels/port.ts';
import type { OutgoingMessage, PartRow } from '../features/channels/delivery/api.ts';
import { createDelivery } from '../features/channels/delivery/delivery.ts';
import { countWaitingParts, maxHeld } from '../features/channels/delivery/held.ts';
import { createQuietUntil } from '../features/channels/delivery/quiet-hours.ts';
import { InstanceSender, type SenderDeps } from '../features/channels/delivery/sender.ts';
import { decidePart, enqueueParts, listParts } from '../features/channels/delivery/store.ts';
import { nextActive } from '../features/unattended/heartbeat/timing/active-hours.ts';
import type { Db } from '../kernel/db/db.ts';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { newId } from '../kernel/ids.ts';
import { acceptChannelMessages } from '../transactions/accept-channel-messages.ts';
import { beginChannelSend, finishChannelSend, recoverChannelSends } from '../transactions/channel-sends.ts';
import { confirmApproval } from '../transactions/confirm-approval.ts';
import { migrations, operations } from '../transactions/registry.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const berlin = { start: '22:00', end: '07:00', timeZone: 'Europe/Berlin' };
/** 22:30 in Berlin. */
const night = Date.parse('2026-11-27T21:30:00Z');

let db: Db;
let clock: StepClock;
let stopping: AbortController;
let running: Promise<void>;
let quietHours: QuietHours | undefined;
let quietHoursOf: Record<string, QuietHours>;
let agents: Record<string, { suspended: boolean; quietHours?: QuietHours }>;
let texts: string[];
let calls = 0;

async function open(startMs: number): Promise<void> {
  const inner = await openInlineDb({ operations, migrations });
  const counted = async <T>(call: Promise<T>): Promise<T> => {
    calls += 1;
    try {
      return await call;
    } finally {
      calls -= 1;
    }
  };
  db = {
    ...inner,
    read: (one, input) => counted(inner.read(one, input)),
    write: (one, input) => counted(inner.write(one, input)),
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  };
  clock = createStepClock(startMs);
}
beforeEach(async () => {
  await open(night);
  quietHours = QuietHours().parse(berlin);
  quietHoursOf = {};
  agents = { default: { suspended: false } };
  texts = [];
  stopping = new AbortController();
  running = Promise.resolve();
});
afterEach(async () => {
  await stop();
  await db[Symbol.asyncDispose]();
});
async function stop(): Promise<void> {
  stopping.abort();
  await running;
  stopping = new AbortController();
}

const core = () => ({ db, clock, bus: { emit() {} }, log: { error() {}, warn() {}, info() {}, debug() {} }, traceWork() {} });
const find = (id: string) => {
  const agent = agents[id];
  return agent && { suspended: agent.suspended, config: { notification: { quietHours: agent.quietHours } } };
};
const quietUntil: ReturnType<typeof createQuietUntil> = (part, atMs) =>
  createQuietUntil({ channels: () => ({ net: { quietHours, quietHoursOf } }), agents: { find } as never, nextWithin: nextActive })(part, atMs);

/** Connects the channel. */
function connect(bootId = 'boot-1'): void {
  const adapter: Partial<Adapter> = {
    send: ({ text }) => {
      texts.push(text);
      if (text === 'refused') return Promise.resolve({ is: 'rejected', kind: 'blocked', text: 'blocked' });
      return Promise.resolve({ is: 'sent', platformId: `m${texts.length}` });
    },
  };
  const sends = { beginSend: beginChannelSend, finishSend: finishChannelSend, recoverSends: recoverChannelSends };
  const deps = { ...core(), ...sends, bootId, announceAlert() {}, quietUntil, agents: { find } };
  const platform = { ...irc, rate: { burst: 1_000, perSecond: 1_000 } };
  const options = { instance: 'net', adapter: adapter as Adapter, platform, onSent() {}, onUnknown: 'park' as const };
  running = new InstanceSender(deps as unknown as SenderDeps, options).run(stopping.signal);
}

async function send(text: string, more: Partial<OutgoingMessage> & { readonly conversationId?: string } = {}): Promise<readonly PartRow[]> {
  const { conversationId = 'ada', ...rest } = more;
  const rules = { platformOf: () => irc, wake() {}, maxPartsOf: () => undefined, quietUntil };
  const delivery = createDelivery({ ...core(), ...rules } as unknown as Parameters<typeof createDelivery>[0]);
  await delivery.load();
  const parts = delivery.api.partsOf({
    opKey: newId('op'),
    to: { instance: 'net', channelType: 'irc', conversationId, threadId: null, conversationKind: 'shared' },
    text,
    agentId: 'default',
    principalId: 'person:ada',
    conversationRef: null,
    turnId: null,
    ...rest,
  });
  await db.write(enqueueParts, { parts });
  return parts;
}
const report = (text: string, more: Parameters<typeof send>[1] = {}) => send(text, { unsolicited: 'report', ...more });

/** Somebody writes. */
async function hear(conversationId: string, isBot: 0 | 1 = 0): Promise<void> {
  const place = { instance: 'net', channelType: 'irc', conversationId, threadId: null, conversationKind: 'shared' as const };
  const none = { eventKey: null, platformId: null, subject: null, attachmentsJson: null, conversationRef: null };
  const said = { senderId: 'account:ada', senderName: 'ada', text: 'hello', agentId: 'default', verdict: 'turn' as const };
  const row = { ...place, ...none, ...said, id: newId('cm'), isForwarded: 0 as const, isBot, sentAtMs: clock.now(), receivedAtMs: clock.now() };
  await db.write(acceptChannelMessages, { messages: [{ row }] });
}

const rows = async () => (await db.read(listParts, { agentIds: null, state: null, instance: 'net', offset: 0, limit: 200 })).rows.toReversed();
const states = async () => (await rows()).map(({ text, state }) => `${text} ${state}`);
async function idle(): Promise<void> {
  do await new Promise((resolve) => setImmediate(resolve));
  while (calls > 0);
}
/** Lets time pass. */
async function pass(ms: number): Promise<void> {
  const stepMs = ms > hourMs ? 5 * minuteMs : 30_000;
  await idle();
  for (let left = ms; left > 0; left -= stepMs) {
    clock.advance(Math.min(stepMs, left));
    await idle();
  }
}

test('reports wait for the end of the quiet hours, delay no answer, and are sent in their order', async () => {
  connect();
  await report('one');
  await send('an answer');
  await report('two');
  await pass(minuteMs);
  expect(texts).toEqual(['an answer']);
  expect(await rows()).toMatchObject([
    { state: 'held', errorKind: 'quiet_hours', notBeforeMs: Date.parse('2026-11-28T06:00:00Z') },
    { state: 'accepted' },
    { state: 'held' },
  ]);
  expect(await db.read(countWaitingParts, undefined)).toMatchObject([{ instance: 'net', held: 2 }]);
  await pass(8 * hourMs + 28 * minuteMs);
  expect(texts).toHaveLength(1);
  await pass(2 * minuteMs);
  expect(texts).toEqual(['an answer', 'one', 'two']);
  expect(await db.read(countWaitingParts, undefined)).toEqual([]);
});

test.each([
  ['forward', '2026-03-28T21:30:00Z', '2026-03-29T05:00:00Z'],
  ['back', '2026-10-24T20:30:00Z', '2026-10-25T06:00:00Z'],
])('the hours are those of the zone when clocks go %s', async (_way, from, until) => {
  await db[Symbol.asyncDispose]();
  await open(Date.parse(from));
  connect();
  await report('one');
  expect(await rows()).toMatchObject([{ state: 'held', notBeforeMs: Date.parse(until) }]);
  await pass(Date.parse(until) - clock.now() - minuteMs);
  expect(texts).toEqual([]);
  await pass(2 * minuteMs);
  expect(texts).toEqual(['one']);
});

test('a wall clock that is set counts at once, and the life of a message begins after its hours', async () => {
  connect();
  await report('one', { lifeMs: hourMs });
  clock.step(-1 * hourMs + 10 * minuteMs);
  await pass(minuteMs);
  // Somebody set it to 21:40.
  expect(texts).toEqual(['one']);
  clock.step(2 * hourMs);
  await report('two', { lifeMs: hourMs });
  await pass(minuteMs);
  clock.step(8 * hourMs);
  await pass(minuteMs);
  expect(texts).toEqual(['one', 'two']);
});

test('what is held survives a stop, and is sent once by the next start; notifications expire after their hour, reports after a day', async () => {
  await send('one', { unsolicited: 'notification', lifeMs: hourMs });
  await report('two', { lifeMs: hourMs });
  connect();
  await pass(minuteMs);
  await stop();
  clock.leap(10 * hourMs);
  // 08:31: the hour of the notification is over.
  connect('boot-2');
  await pass(minuteMs);
  await stop();
  connect('boot-3');
  await pass(minuteMs);
  expect(texts).toEqual(['two']);
  expect(await states()).toEqual(['one expired', 'two accepted']);
});

test('what waited before the quiet hours began waits on, but not the rest of what was begun', async () => {
  clock.step(-2 * hourMs);
  await report('waiting', { lifeMs: 4 * hourMs });
  await report('late', { lifeMs: hourMs });
  const long = await report(Array.from({ length: 400 }, (_, n) => `line ${n} of a long report`).join('\n'), {
    conversationId: 'bob',
    lifeMs: 4 * hourMs,
  });
  expect(long.length).toBeGreaterThan(1);
  // Its first part was sent before.
  await db.write(beginChannelSend, { id: long[0]?.id ?? '', channelType: 'irc', bootId: 'boot-1', atMs: clock.now(), ageNowMs: clock.now() });
  await db.write(finishChannelSend, { id: long[0]?.id ?? '', bootId: 'boot-1', is: 'accepted', atMs: clock.now() });
  clock.step(2 * hourMs);
  connect();
  await pass(minuteMs);
  expect(texts).toHaveLength(long.length - 1);
  expect((await states()).slice(0, 2)).toEqual(['waiting held', 'late expired']);
  await pass(8 * hourMs + 30 * minuteMs);
  expect(texts.at(-1)).toBe('waiting');
});

test('a place holds a bounded number', async () => {
  for (let n = 0; n < maxHeld + 2; n += 1) await report(`${n}`);
  await report('elsewhere', { conversationId: 'bob' });
  const refused = (await rows()).filter(({ state }) => state === 'rejected');
  expect(refused).toMatchObject([
    { text: `${maxHeld}`, errorKind: 'queue_full', error: expect.stringContaining('quiet hours') },
    { text: `${maxHeld + 1}`, errorKind: 'queue_full' },
  ]);
  expect((await states()).at(-1)).toBe('elsewhere held');
});

test('a question is held only when it can be answered after the hours, and keeps its end', async () => {
  connect();
  await send('urgent?', { unsolicited: 'question', lifeMs: 2 * hourMs });
  await send('later?', { unsolicited: 'question', lifeMs: 24 * hourMs });
  await pass(minuteMs);
  expect(texts).toEqual(['urgent?']);
  expect((await rows()).at(-1)).toMatchObject({ state: 'held', expiresAtMs: night + 24 * hourMs });
});

test('somebody who wrote just now gets reports at once, though no notifications', async () => {
  connect();
  await hear('ada');
  await hear('bob', 1);
  await report('done');
  await send('by a program', { unsolicited: 'notification' });
  await report('to a bot', { conversationId: 'bob' });
  await pass(31 * minuteMs);
  await report('much later');
  await pass(minuteMs);
  expect(texts).toEqual(['done']);
  expect(await states()).toEqual(['done accepted', 'by a program held', 'to a bot held', 'much later held']);
});

test('people have separate hours, agents have them for notifications, and critical ones pass', async () => {
  const day = { ...QuietHours().parse(berlin), start: '20:00', end: '23:00' };
  quietHoursOf = { bob: day };
  agents['default'] = { suspended: false, quietHours: { ...day, end: '23:30' } };
  connect();
  await report('to bob', { conversationId: 'bob' });
  await send('a note', { conversationId: 'bob', unsolicited: 'notification' });
  await send('a fire', { conversationId: 'bob', unsolicited: 'critical' });
  await pass(minuteMs);
  expect(texts).toEqual(['a fire']);
  await pass(30 * minuteMs);
  expect(texts).toEqual(['a fire', 'to bob']);
  await pass(30 * minuteMs);
  expect(texts).toEqual(['a fire', 'to bob', 'a note']);
});

test('hours that change count within half a minute: longer ones hold on, removed ones release', async () => {
  connect();
  await report('one', { lifeMs: hourMs });
  await pass(minuteMs);
  quietHours = QuietHours().parse({ ...berlin, end: '09:00' });
  await pass(10 * hourMs);
  expect(await rows()).toMatchObject([{ state: 'held', notBeforeMs: Date.parse('2026-11-28T08:00:00Z') }]);
  await pass(hourMs);
  expect(texts).toEqual(['one']);
  await pass(14 * hourMs);
  await report('two');
  await pass(minuteMs);
  expect(texts).toHaveLength(1);
  quietHours = undefined;
  await pass(minuteMs);
  expect(texts).toEqual(['one', 'two']);
});

test('of a deleted agent nothing is sent, that of a suspended one waits', async () => {
  agents['other'] = { suspended: true };
  connect();
  await report('of other', { agentId: 'other', lifeMs: 24 * hourMs });
  await report('of gone', { agentId: 'gone' });
  await pass(9 * hourMs);
  expect(await states()).toEqual(['of other held', 'of gone rejected']);
  agents['other'] = { suspended: false };
  await pass(minuteMs);
  expect(texts).toEqual(['of other']);
});

test('an operator sends one again at any hour, and a question that was decided elsewhere is not asked', async () => {
  quietHours = undefined;
  connect();
  const [first] = await report('refused');
  await pass(minuteMs);
  quietHours = QuietHours().parse(berlin);
  const base = { principalId: 'token:root', classification: 'mutate', outcome: 'success', traceId: 'a'.repeat(32) } as const;
  const audit = { ...base, id: newId('au'), atMs: clock.now(), action: 'delivery.resend' };
  await db.write(decidePart, { id: first?.id ?? '', as: 'resend', agentIds: null, expiresAtMs: clock.now() + hourMs, audit, atMs: clock.now() });
  await send('asked?', { opKey: 'approval:ap_1', unsolicited: 'question', lifeMs: 24 * hourMs });
  expect(await db.write(confirmApproval, { questionKey: 'approval:ap_1', parts: [] })).toBe(false);
  await pass(minuteMs);
  expect(texts).toEqual(['refused', 'refused']);
  expect(await states()).toEqual(['refused rejected']);
});
