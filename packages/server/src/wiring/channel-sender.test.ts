import { createStepClock, type StepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { irc } from '../channels/irc/platform.ts';
import type { Act, Adapter, LookUp, Platform, RatePlan, SendResult } from '../channels/port.ts';
import { createDelivery } from '../features/channels/delivery/delivery.ts';
import { InstanceSender, type SenderDeps } from '../features/channels/delivery/sender.ts';
import { decidePart, enqueueParts, listParts, readHeads } from '../features/channels/delivery/store.ts';
import { AppError } from '../kernel/app-error.ts';
import type { Db } from '../kernel/db/db.ts';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { listInbox } from '../features/unattended/inbox/store.ts';
import { newId } from '../kernel/ids.ts';
import { beginChannelSend, finishChannelSend, recoverChannelSends } from '../transactions/channel-sends.ts';
import { migrations, operations } from '../transactions/registry.ts';

/** A platform that acts as scripted: each send takes the next result, the last one again. */
interface Fake {
  readonly results: SendResult[];
  readonly found: LookUp[];
  /** Keys of the sends, `?` is a query of the history. */
  readonly seen: string[];
  /** What was sent. */
  readonly texts?: string[];
  /** Time that a send takes. */
  readonly takesMs?: number;
  /** Times from which the look-ups searched. */
  readonly searchedFrom?: number[];
  /** Times of the sends. */
  readonly at?: number[];
}

let db: Db;
let clock: StepClock;
let stopping: AbortController;
let running: Promise<void>;
let alerts: string[];
beforeEach(async () => {
  alerts = [];
  db = counting(await openInlineDb({ operations, migrations }));
  clock = createStepClock();
  stopping = new AbortController();
  running = Promise.resolve();
});
afterEach(async () => {
  stopping.abort();
  await running;
  await db[Symbol.asyncDispose]();
});

const cut: SendResult = { is: 'ambiguous', text: 'The connection ended' };
const sent: SendResult = { is: 'sent', platformId: 'm1' };
const down: SendResult = { is: 'notSent', text: 'refused' };

const plenty: RatePlan = { burst: 1_000, perSecond: 1_000 };
/** What the media store answers. */
let readFile: () => Promise<Uint8Array | undefined> = () => Promise.resolve(undefined);

interface SenderSetup {
  readonly keyWindowMs?: number;
  readonly canLookUp?: boolean;
  readonly rate?: RatePlan;
  readonly instance?: string;
  readonly onUnknown?: 'park' | 'resend';
  /** Ends of the edits of previews. */
  readonly edits?: Act<object>[];
}

function sender(
  fake: Fake,
  { keyWindowMs, canLookUp = false, rate = plenty, instance = 'net', onUnknown = 'park', edits }: SenderSetup = {},
  bootId = 'boot-1',
) {
  const adapter: Partial<Adapter> = {
    send: async ({ text }, { key }) => {
      fake.seen.push(key);
      fake.texts?.push(text);
      fake.at?.push(clock.monotonic());
      if (fake.takesMs !== undefined) await new Promise<void>((resolve) => clock.after(fake.takesMs ?? 0, resolve));
      return (fake.results.length > 1 ? fake.results.shift() : fake.results[0]) ?? sent;
    },
    ...(edits !== undefined && {
      edit: () => {
        fake.seen.push('edit');
        return Promise.resolve((edits.length > 1 ? edits.shift() : edits[0]) ?? { is: 'done', value: {} });
      },
    }),
    ...(canLookUp && {
      lookUp: (_part, { sinceMs }) => {
        fake.seen.push('?');
        fake.searchedFrom?.push(sinceMs);
        return Promise.resolve((fake.found.length > 1 ? fake.found.shift() : fake.found[0]) ?? { is: 'absent' });
      },
    }),
  };
  const log = { error() {}, warn() {}, info() {}, debug() {} };
  const deps = {
    db,
    clock,
    log,
    bus: { emit() {} },
    traceWork() {},
    bootId,
    beginSend: beginChannelSend,
    finishSend: finishChannelSend,
    recoverSends: recoverChannelSends,
    announceAlert: ({ text }: { readonly text: string }) => alerts.push(text),
    readFile: () => readFile(),
    quietUntil: () => undefined,
  };
  const platform: Platform = { ...irc, rate, ...(keyWindowMs !== undefined && { keyWindowMs }) };
  const one = new InstanceSender(deps as unknown as SenderDeps, { instance, adapter: adapter as Adapter, platform, onSent() {}, onUnknown });
  const others = running;
  running = Promise.all([others, one.run(stopping.signal)]).then(() => {});
  return one;
}

const enqueue = (...conversations: readonly string[]) => enqueueTo('net', conversations);

/** Stores a message to each of these conversations; of the same one they are different messages. */
async function enqueueTo(instance: string, conversations: readonly string[]): Promise<void> {
  const { api } = createDelivery({
    db,
    clock,
    bus: { emit() {} },
    platformOf: () => irc,
    wake() {},
    maxPartsOf: () => undefined,
    quietUntil: () => undefined,
  } as unknown as Parameters<typeof createDelivery>[0]);
  const parts = conversations.flatMap((conversationId, index) =>
    api.partsOf({
      opKey: conversations.indexOf(conversationId) === index ? `op-${conversationId}` : `op-${conversationId}-${index}`,
      to: { instance, channelType: 'irc', conversationId, threadId: null, conversationKind: 'direct' },
      text: 'hello',
      agentId: 'default',
      principalId: 'person:ada',
      conversationRef: null,
      turnId: null,
    }),
  );
  await db.write(enqueueParts, { parts });
}
const rows = async () => (await db.read(listParts, { agentIds: null, state: null, instance: 'net', offset: 0, limit: 50 })).rows;
const states = async () => (await rows()).map(({ state }) => state).toSorted();
/** Calls of the database that run. */
let calls = 0;
async function counted<T>(call: Promise<T>): Promise<T> {
  calls += 1;
  try {
    return await call;
  } finally {
    calls -= 1;
  }
}
const counting = (inner: Db): Db => ({
  ...inner,
  read: (one, input) => counted(inner.read(one, input)),
  write: (one, input) => counted(inner.write(one, input)),
  telemetry: (one, input) => counted(inner.telemetry(one, input)),
  [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
});
/** Resolves when everything waits for the clock: a database outside of the process answers in real time. */
async function idle(): Promise<void> {
  do await new Promise((resolve) => setImmediate(resolve));
  while (calls > 0);
}

/** Lets time pass until a state holds. */
async function pass(ms: number, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 2_000; tries += 1) {
    if (await holds()) return;
    await idle();
    clock.advance(ms);
  }
  throw new Error(`the state was not reached: ${JSON.stringify((await rows()).slice(0, 3))}`);
}
const isEnded = async () => !(await states()).some((state) => state === 'pending' || state === 'sending');

test('a send whose answer was lost is sent again with its key while the platform knows it', async () => {
  const fake: Fake = { results: [cut, cut, sent], found: [], seen: [] };
  await enqueue('ada');
  sender(fake, { keyWindowMs: 120_000 });
  await pass(500, isEnded);
  expect(fake.seen).toEqual(['op-ada/1', 'op-ada/1', 'op-ada/1']);
  expect(await rows()).toMatchObject([{ state: 'accepted', platformId: 'm1' }]);
});

test('after that time it is unknown, and never sent again', async () => {
  const fake: Fake = { results: [cut, { is: 'notSent', text: 'limit', retryAfterMs: 200_000 }, sent], found: [], seen: [] };
  await enqueue('ada');
  sender(fake, { keyWindowMs: 120_000 });
  await pass(5_000, isEnded);
  expect(fake.seen).toHaveLength(2);
  expect(await rows()).toMatchObject([{ state: 'unknown', errorKind: 'unconfirmed' }]);
});

test('a refusal after a lost answer says nothing of the first try', async () => {
  const fake: Fake = { results: [cut, { is: 'rejected', kind: 'blocked', text: 'blocked' }], found: [], seen: [] };
  await enqueue('ada');
  sender(fake, { keyWindowMs: 120_000 });
  await pass(500, isEnded);
  expect(await rows()).toMatchObject([{ state: 'unknown', errorKind: 'blocked' }]);
});

test.each([
  ['is found: it counts as sent', [{ is: 'found', platformId: 'm7' }], ['op-ada/1', '?'], { state: 'accepted', platformId: 'm7' }],
  ['is absent twice: it is sent again', [{ is: 'absent' }], ['op-ada/1', '?', '?', 'op-ada/1'], { state: 'accepted', platformId: 'm1' }],
  [
    'is absent once and then found: it counts as sent',
    [{ is: 'absent' }, { is: 'found', platformId: 'm8' }],
    ['op-ada/1', '?', '?'],
    { state: 'accepted', platformId: 'm8' },
  ],
  ['cannot be found out: a person decides', [{ is: 'unclear', text: 'no history' }], ['op-ada/1', '?'], { state: 'unknown', error: 'no history' }],
  [
    'cannot be found out now: it is looked up later',
    [{ is: 'unclear', text: 'down', retry: true }, { is: 'found' }],
    ['op-ada/1', '?', '?'],
    { state: 'accepted' },
  ],
] as const)('a lost answer on a platform with a history: the message %s', async (_name, found, seen, end) => {
  const fake: Fake = { results: [cut, sent], found: [...found], seen: [] };
  await enqueue('ada');
  sender(fake, { canLookUp: true });
  await pass(500, isEnded);
  expect(fake.seen).toEqual(seen);
  expect(await rows()).toMatchObject([end]);
});

test('a message whose outcome nothing shows is sent once more with a mark, where the operator chose that', async () => {
  const fake: Fake = { results: [cut, cut, sent], found: [], seen: [], texts: [] };
  await enqueue('ada');
  sender(fake, { onUnknown: 'resend' });
  await pass(500, isEnded);
  expect(fake.texts).toEqual(['hello', '(may be a repeat) hello']);
  expect(await rows()).toMatchObject([{ state: 'unknown', errorKind: 'unconfirmed' }]);
  expect(alerts).toHaveLength(1);
});

test('an answer is sent when its preview is gone, and the edit is noted as dropped before', async () => {
  const fake: Fake = { results: [sent], found: [], seen: [] };
  await enqueue('ada');
  await db.write(enqueueParts, { parts: (await rows()).map((row) => ({ ...row, id: `${row.id}-edit`, opKey: 'op-edit', editsId: 'm0' })) });
  sender(fake, {
    edits: [
      { is: 'failed', kind: 'ambiguous', text: 'cut' },
      { is: 'failed', kind: 'not_found', text: 'gone' },
    ],
  });
  await pass(500, isEnded);
  expect(fake.seen).toEqual(['op-ada/1', 'edit', 'edit', 'op-edit/1']);
  expect((await rows()).find(({ opKey }) => opKey === 'op-edit')).toMatchObject({ state: 'accepted', editsId: null });
});

test('what an earlier process was sending is looked up, or parked where that is impossible', async () => {
  await enqueue('ada');
  const [head] = await db.read(readHeads, { instance: 'net' });
  await db.write(beginChannelSend, { id: head?.id ?? '', channelType: 'irc', bootId: 'boot-0', atMs: clock.now(), ageNowMs: clock.now() });
  const fake: Fake = { results: [sent], found: [{ is: 'found', platformId: 'm9' }], seen: [] };
  sender(fake, { canLookUp: true });
  await pass(500, isEnded);
  expect(fake.seen).toEqual(['?']);
  expect(await rows()).toMatchObject([{ state: 'accepted', platformId: 'm9' }]);
});

test('a file that cannot be read now was not sent, one that is gone is refused', async () => {
  const fake: Fake = { results: [sent], found: [], seen: [] };
  const file = { mediaId: 'md_1.png', kind: 'image', name: 'a.png', mediaType: 'image/png', bytes: 1 };
  const withFile = async (conversation: string) => {
    await enqueue(conversation);
    const [row] = (await rows()).filter(({ conversationId }) => conversationId === conversation);
    if (row === undefined) throw new Error('the text is missing');
    const part = { ...row, id: `${row.id}-file`, opKey: `file-${conversation}`, text: '', fileJson: JSON.stringify(file) };
    await db.write(enqueueParts, { parts: [part] });
  };
  let reads = 0;
  readFile = () => {
    reads += 1;
    return reads === 1 ? Promise.reject(new Error('the disk is away')) : Promise.resolve(reads === 2 ? new Uint8Array(1) : undefined);
  };
  await withFile('ada');
  sender(fake);
  await pass(500, isEnded);
  expect(fake.seen).toEqual(['op-ada/1', 'file-ada/1']);
  expect(await states()).toEqual(['accepted', 'accepted']);
  await withFile('bob');
  await pass(500, isEnded);
  expect((await rows()).find(({ opKey }) => opKey === 'file-bob')).toMatchObject({ state: 'rejected', errorKind: 'file' });
});

test('a limit of the whole instance stops every conversation until its time, and uses no try', async () => {
  const fake: Fake = { results: [{ is: 'notSent', text: 'limit', retryAfterMs: 40_000, scope: 'instance' }, sent], found: [], seen: [] };
  await enqueue('ada');
  sender(fake);
  await pass(0, () => fake.seen.length === 1);
  await enqueue('bob', 'eve');
  await pass(1_000, async () => clock.monotonic() >= 39_000);
  expect(fake.seen).toEqual(['op-ada/1']);
  await pass(1_000, isEnded);
  expect(await states()).toEqual(['accepted', 'accepted', 'accepted']);
  expect((await rows()).every(({ attempts }) => attempts === 1)).toBe(true);
});

test('an instance that fails again and again pauses, and a long outage uses up no tries', async () => {
  const fake: Fake = { results: [down], found: [], seen: [] };
  await enqueue('ada');
  sender(fake);
  await pass(5_000, () => clock.monotonic() >= 50 * 60_000);
  expect(fake.seen.length).toBeLessThan(30);
  expect(await states()).toEqual(['pending']);
  fake.results.splice(0, 1, sent);
  await pass(5_000, isEnded);
  expect(await states()).toEqual(['accepted']);
});

test('a lost answer is looked for from the time at which the send began', async () => {
  const fake: Fake = { results: [cut], found: [{ is: 'found' }], seen: [], takesMs: 90_000, searchedFrom: [] };
  await enqueue('ada');
  const beganAtMs = clock.now();
  sender(fake, { canLookUp: true });
  await pass(500, isEnded);
  expect(fake.searchedFrom).toEqual([expect.toSatisfy((fromMs: number) => fromMs - beganAtMs < 5_000)]);
});

test.each([-3_600_000, -1_000, 3_600_000])(
  'a wall clock set by %i ms lets a platform know no key for longer, and delays nothing',
  async (setByMs) => {
    const fake: Fake = { results: [cut, { is: 'notSent', text: 'limit', retryAfterMs: 120_000 }, sent], found: [], seen: [] };
    await enqueue('ada');
    sender(fake, { keyWindowMs: 120_000 });
    await pass(500, () => fake.seen.length === 2);
    await pass(0, async () => (await rows())[0]?.errorKind === 'not_sent');
    clock.step(setByMs);
    await pass(1_000, isEnded);
    expect(clock.monotonic()).toBeLessThan(200_000);
    expect(fake.seen).toHaveLength(2);
    expect(await rows()).toMatchObject([{ state: 'unknown' }]);
  },
);

test('what could not be sent in time is reported: each message that may have been sent, others once a day', async () => {
  const fake: Fake = { results: [cut, down], found: [{ is: 'unclear', text: 'down', retry: true }], seen: [] };
  await enqueue('ada');
  sender(fake, { canLookUp: true });
  await pass(500, () => fake.seen.length === 1);
  stopping.abort();
  await running;
  await enqueue('ben', 'eve');
  clock.advance(2 * 3_600_000);
  stopping = new AbortController();
  sender(fake, { canLookUp: true });
  await pass(500, isEnded);
  expect(await states()).toEqual(['expired', 'expired', 'unknown']);
  expect(alerts.toSorted()).toEqual([expect.stringMatching(/to ada .*may have been sent/), expect.stringMatching(/could not be sent in time/)]);
});

test('a database that refuses writes for minutes blocks no conversation for longer', async () => {
  const fake: Fake = { results: [sent], found: [], seen: [] };
  await enqueue('ada');
  const whole = db;
  let refused = 0;
  db = {
    ...db,
    read: (one, input) => whole.read(one, input),
    write: (one, input) => {
      if (one.name !== 'delivery.finish' || clock.monotonic() > 180_000) return whole.write(one, input);
      refused += 1;
      return Promise.reject(new AppError('unavailable', 'The disk is full'));
    },
  };
  sender(fake);
  await pass(1_000, isEnded);
  expect(refused).toBeGreaterThan(5);
  expect(fake.seen).toEqual(['op-ada/1']);
  expect(await states()).toEqual(['accepted']);
});

test('a repeat that may have been sent is reported like the first', async () => {
  const fake: Fake = { results: [cut], found: [], seen: [] };
  await enqueue('ada');
  sender(fake);
  await pass(500, isEnded);
  const [row] = await rows();
  const audit = { id: newId('au'), atMs: clock.now(), principalId: 'token:root', action: 'delivery.resend', traceId: 'a'.repeat(32) };
  clock.advance(1_000);
  await db.write(decidePart, {
    id: row?.id ?? '',
    as: 'resend',
    agentIds: null,
    expiresAtMs: clock.now() + 60_000,
    audit: { ...audit, classification: 'mutate', outcome: 'success' },
    atMs: clock.now(),
  });
  await pass(500, isEnded);
  const inbox = await db.read(listInbox, { principalId: null, agentIds: null, unreadOnly: false, before: null, limit: 50 });
  expect(inbox.rows).toHaveLength(2);
});

test('fifty answers wait 40 seconds for the platform, then go at the planned rate, and those of another instance at once', async () => {
  const limit: SendResult = { is: 'notSent', text: 'limit', retryAfterMs: 40_000, scope: 'instance' };
  const fake: Fake = { results: [limit, sent], found: [], seen: [], at: [] };
  const other: Fake = { results: [sent], found: [], seen: [], at: [] };
  const people = Array.from({ length: 50 }, (_, index) => `ada${index}`);
  sender(fake, { rate: { burst: 1, perSecond: 2 } });
  await enqueue('first', ...people);
  await pass(0, () => fake.seen.length === 1);
  await enqueueTo('other', ['bob', 'eve']);
  sender(other, { rate: { burst: 5, perSecond: 2 }, instance: 'other' });
  await pass(250, () => clock.monotonic() >= 39_000);
  expect(fake.seen).toHaveLength(1);
  expect(other.seen).toHaveLength(2);
  expect(Math.max(...(other.at ?? []))).toBeLessThan(2_000);
  await pass(250, () => fake.seen.length === 52);
  await pass(0, async () => (await db.read(readHeads, { instance: 'net' })).length === 0);
  const at = fake.at?.slice(1) ?? [];
  expect(Math.min(...at)).toBeGreaterThanOrEqual(40_000);
  // At any time two in a second, and the one that the bucket holds.
  expect(at.every((time, index) => (at[index + 3] ?? Infinity) - time >= 1_000)).toBe(true);
  expect(new Set(fake.seen)).toEqual(new Set(['op-first/1', ...people.map((name) => `op-${name}/1`)]));
});

test('a thousand messages to fifty conversations keep their order in each, whatever fails', async () => {
  let state = 12;
  const random = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  const kinds: readonly SendResult[] = [cut, down, { is: 'notSent', text: 'limit', retryAfterMs: 3_000 }];
  const plan = Array.from({ length: 4_000 }, () => kinds[Math.floor(random() * 20)] ?? sent);
  const fake: Fake = { results: [...plan, sent], found: [], seen: [], takesMs: 20 };
  const to = Array.from({ length: 1_000 }, () => `person-${Math.floor(random() * 50)}`);
  await enqueue(...to);
  sender(fake, { keyWindowMs: 3_600_000 });
  const waiting = async () => (await db.read(listParts, { agentIds: null, state: 'pending', instance: 'net', offset: 0, limit: 1 })).total;
  await pass(500, async () => fake.seen.length >= 1_000 && (await waiting()) === 0);
  await pass(100, isEnded);
  // A lost confirmation is of a message that arrived; the platform knows a repeat by its key.
  const arrived = [...new Set(fake.seen.filter((_, index) => (plan[index] ?? sent).is !== 'notSent'))];
  const wanted = to.map((person, index) => (to.indexOf(person) === index ? `op-${person}/1` : `op-${person}-${index}/1`));
  const personOf = (key: string) => /person-\d+/.exec(key)?.[0];
  expect(Map.groupBy(arrived, personOf)).toEqual(Map.groupBy(wanted, personOf));
  expect(fake.seen.length).toBeGreaterThan(1_100);
  expect((await db.read(listParts, { agentIds: null, state: 'accepted', instance: 'net', offset: 0, limit: 1 })).total).toBe(1_000);
});

test('a send costs two writes and a read, however many wait, and one at rest has one timer', async () => {
  await enqueue(...Array.from({ length: 30 }, () => 'ada'), ...Array.from({ length: 30 }, () => 'bob'));
  const used = new Map<string, number>();
  const count = ({ name }: { readonly name: string }) => used.set(name, (used.get(name) ?? 0) + 1);
  const real = db;
  db = {
    ...real,
    read: (operation, input) => (count(operation), real.read(operation, input)),
    write: (operation, input) => (count(operation), real.write(operation, input)),
    [Symbol.asyncDispose]: () => real[Symbol.asyncDispose](),
  };
  const fake: Fake = { results: [sent], found: [], seen: [] };
  sender(fake);
  await pass(0, () => used.get('delivery.finish') === 60 && used.get('delivery.head') === 60);
  expect(Object.fromEntries(used)).toEqual({
    'delivery.recover': 1,
    'delivery.heads': 1,
    'delivery.held': 1,
    'delivery.begin': 60,
    'delivery.finish': 60,
    'delivery.head': 60,
  });
  expect(fake.seen.filter((key) => key.startsWith('op-ada'))).toHaveLength(30);
  await pass(0, () => clock.pending() === 1);
});

test('conversations whose messages have to wait do not keep others waiting', async () => {
  const many = Array.from({ length: 300 }, (_, index) => `ada${index}`);
  await enqueue(...many);
  const later: SendResult = { is: 'notSent', text: 'limit', retryAfterMs: 600_000 };
  const fake: Fake = { results: [later], found: [], seen: [] };
  const one = sender(fake);
  await pass(0, () => fake.seen.length === many.length);
  fake.results[0] = sent;
  await enqueue('bob');
  one.wake();
  await pass(0, () => fake.seen.includes('op-bob/1'));
  expect(fake.seen).toHaveLength(many.length + 1);
});
