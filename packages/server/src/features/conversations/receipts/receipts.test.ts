import { toFragment } from '../../../kernel/json-fragment.ts';
import { createStepClock, type StepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { operation, type OperationCall } from '../../../kernel/db/operation.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import { silentLog } from '../../../kernel/log.ts';
import type { TurnSink } from '../../../runtime/turn.ts';
import type { TurnOutcome, TurnRequest } from '../turns/api.ts';
import type { ReceiptRow } from './api.ts';
import { nodeMigrations } from '../../operations/nodes/migrations.ts';
import { nodeOperations } from '../../operations/nodes/store.ts';
import { beginBoot, endBoot } from '../../operations/nodes/testing/boots.ts';
import { receiptMigrations } from './migrations.ts';
import { createReceipts } from './receipts.ts';
import { keepReceipt, receiptOperations } from './store.ts';

const keep = operation('test.keep', async (tx, call: OperationCall) => tx.call(call));
const count = operation('test.count', async (tx) => (await tx.build((db, sql) => db.selectFrom('receipt').select(sql`1`.as('one')))).length);

/** A turn controlled by the test. */
interface Turn {
  readonly signal: AbortSignal;
  readonly sink: TurnSink;
  /** Starts what must not be repeated. */
  open(): Promise<void>;
  end(finishReason?: TurnOutcome['finishReason'], options?: { readonly opened: boolean }): Promise<void>;
}

let db: Db;
let clock: StepClock;
let turns: Turn[];
let receipts: ReturnType<typeof createReceipts>;

beforeEach(async () => {
  db = await openInlineDb({
    operations: [...receiptOperations, ...nodeOperations, keep, count],
    migrations: [...receiptMigrations, ...nodeMigrations],
  });
  await beginBoot(db, 'boot');
  clock = createStepClock();
  turns = [];
  receipts = createReceipts({ db, clock, log: silentLog, bootId: 'boot', execute });
});
afterEach(async () => {
  await receipts[Symbol.asyncDispose]();
  await db[Symbol.asyncDispose]();
});

function execute({ alongside }: TurnRequest, { signal, traceId }: CallContext, sink?: TurnSink): Promise<TurnOutcome> {
  const ended = Promise.withResolvers<TurnOutcome>();
  const text: string[] = [];
  const turn: Turn = {
    signal,
    sink: { text: (fragment) => (text.push(fragment), sink?.text(fragment)), flush: () => sink?.flush() ?? true, drained: async () => {} },
    open: () => keepAll(alongside?.opened?.({ conversationRef: 'cv_x' })),
    async end(finishReason = 'stop', { opened } = { opened: false }) {
      if (opened) await turn.open();
      const outcome: TurnOutcome = {
        finishReason,
        text: text.join(''),
        tainted: false,
        tokensUsed: { input: 1, output: 1, total: 2 },
        cachedInput: 0,
        costUsd: 0,
        model: 'mock/mock-fast',
        conversationRef: 'cv_x',
        sessionKey: 'a:b',
        agentId: 'default',
        turnId: 'tn_1',
        traceId,
      };
      await keepAll(alongside?.ended?.(outcome, [], []));
      ended.resolve(outcome);
    },
  };
  if (signal.aborted) void turn.end('aborted');
  else signal.addEventListener('abort', () => void turn.end('aborted'));
  turns.push(turn);
  return ended.promise;
}

async function keepAll(calls: readonly OperationCall[] = []): Promise<void> {
  for (const call of calls) await db.write(keep, call);
}

const request = (message = 'Hello'): TurnRequest => ({ message, address: {} });

function ask(key: string, options: { message?: string; after?: number; principalId?: string; signal?: AbortSignal } = {}, by = receipts) {
  const { message, after, principalId = 'token:a', signal = new AbortController().signal } = options;
  const call: CallContext = {
    identity: { principalId, tokenId: 'a', scopes: ['rpc'] },
    traceId: 't',
    requestId: 'r',
    signal,
    transport: 'http',
  };
  return by.api.execute({ key, after }, request(message), call);
}

async function begun(number: number): Promise<Turn> {
  await expect.poll(() => turns.length).toBe(number);
  const turn = turns.at(-1);
  if (turn === undefined) throw new Error('no turn began');
  return turn;
}

it('keeps a turn running for 30 seconds after its last reader left', async () => {
  const [first, second, back] = [new AbortController(), new AbortController(), new AbortController()];
  await ask('k', { signal: first.signal });
  await ask('k', { signal: second.signal });
  const turn = await begun(1);
  first.abort();
  clock.advance(40_000);
  second.abort();
  clock.advance(29_999);
  const reader = await ask('k', { signal: back.signal });
  clock.advance(40_000);
  expect(turn.signal.aborted).toBe(false);
  back.abort();
  expect(await reader.next()).toBeUndefined();
  clock.advance(29_999);
  expect(turn.signal.aborted).toBe(false);
  clock.advance(1);
  expect(turn.signal.aborted).toBe(true);
});

it('stops a turn at once when the token that asked for it is gone', async () => {
  for (const isEarly of [false, true]) {
    const gone = new AbortController();
    const asked = ask(`of ${isEarly}`, { signal: gone.signal });
    if (isEarly) gone.abort(new AppError('unauthenticated', 'The token was revoked or has expired'));
    const turn = await begun(isEarly ? 2 : 1);
    if (!isEarly) gone.abort(new AppError('unauthenticated', 'The token was revoked or has expired'));
    expect(turn.signal.aborted).toBe(true);
    await asked;
  }
});

it('forgets an aborted turn, unless it ran a run-once operation', async () => {
  const first = await ask('free');
  await (await begun(1)).end('aborted');
  expect(await first.outcome).toMatchObject({ finishReason: 'aborted' });
  await ask('free');
  await (await begun(2)).end();

  const charged = await ask('charged');
  await (await begun(3)).end('aborted', { opened: true });
  await charged.outcome;
  expect(await (await ask('charged')).outcome).toMatchObject({ finishReason: 'aborted' });
  expect(turns.length).toBe(3);
});

it('stores an outcome only when the turn has ended', async () => {
  await db.write(keepReceipt, {
    principalId: 'token:a',
    key: 'k',
    digest: 'other',
    conversationRef: 'cv_x',
    state: 'opened',
    bootId: 'boot',
    outcomeJson: null,
    createdAtMs: 0,
    expiresAtMs: clock.now() + 1,
  });
  await expect((await ask('k')).outcome).rejects.toMatchObject({ code: 'conflict' });
  clock.advance(1);
  await ask('k');
  await (await begun(1)).end();
});

it('keeps keys of different principals separate', async () => {
  await ask('k', { message: 'first' });
  await (await begun(1)).end();
  await expect.poll(() => db.read(count, undefined)).toBe(1);
  // The other body is looked up while the matching one arrives.
  const [wrong, right] = await Promise.all([ask('k', { message: 'other' }), ask('k', { message: 'first' })]);
  await expect(wrong.outcome).rejects.toMatchObject({ code: 'conflict' });
  expect(await right.outcome).toMatchObject({ finishReason: 'stop' });
  expect(turns.length).toBe(1);
});

it('marks missing text, for late readers and for readers of an earlier run', async () => {
  const early = await ask('k', { after: 7 });
  const turn = await begun(1);
  for (const fragment of ['a'.repeat(700_000), 'b'.repeat(700_000), 'c']) turn.sink.text(toFragment(fragment));
  turn.sink.flush();
  expect(await early.next()).toEqual({ firstId: 2, fragments: ['b'.repeat(700_000), 'c'], gap: true });
  const [begin, joined, ahead] = [await ask('k'), await ask('k', { after: 2 }), await ask('k', { after: 9 })];
  expect(await begin.next()).toMatchObject({ firstId: 2, gap: true });
  expect(await joined.next()).toEqual({ firstId: 3, fragments: ['c'], gap: false });
  expect(await ahead.next()).toMatchObject({ firstId: 2, gap: true });
  await turn.end();
  expect(await Promise.all([early, begin, joined, ahead].map((reader) => reader.next()))).toEqual([undefined, undefined, undefined, undefined]);
  expect(await (await ask('k', { after: 3 })).next()).toEqual({ firstId: 1, fragments: [], gap: true });
});

it('a turn that runs in another daemon is not repeated, nor is one that may have had an effect before its daemon died', async () => {
  await beginBoot(db, 'other');
  await using elsewhere = createReceipts({ db, clock, log: silentLog, bootId: 'other', execute });
  const askElsewhere = (key: string) => ask(key, {}, elsewhere);
  await askElsewhere('once');
  const once = await begun(1);
  await askElsewhere('free');
  const free = await begun(2);
  await once.open();
  for (const key of ['once', 'free']) {
    await expect((await ask(key)).outcome).rejects.toMatchObject({ code: 'unavailable', details: { retryAfterMs: 1_000 } });
    await expect((await ask(key, { message: 'other' })).outcome).rejects.toMatchObject({ code: 'conflict' });
  }
  await endBoot(db, 'other');
  await expect((await ask('once')).outcome).rejects.toMatchObject({ code: 'conflict' });
  const again = await ask('free');
  await (await begun(3)).end();
  expect(await again.outcome).toMatchObject({ finishReason: 'stop' });
  expect(free.signal.aborted).toBe(false);
});

it('limits the turns under keys, per principal and in total', async () => {
  await receipts[Symbol.asyncDispose]();
  // Thousands of separate commits take long.
  const unstored: Db = { ...db, write: async () => undefined as never };
  const untilAborted: typeof execute = (_, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
  receipts = createReceipts({ db: unstored, clock, log: silentLog, bootId: 'boot', execute: untilAborted });
  await Promise.all(Array.from({ length: 256 }, (_, i) => ask(`k${i}`)));
  await expect(ask('one more')).rejects.toMatchObject({ code: 'rate_limited' });
  await ask('k0');
  for (let other = 0; other < 7; other++) await Promise.all(Array.from({ length: 256 }, (_, i) => ask(`k${i}`, { principalId: `token:${other}` })));
  await expect(ask('k', { principalId: 'token:z' })).rejects.toMatchObject({ code: 'rate_limited' });
});

it('deletes expired receipts at start and every hour', async () => {
  const row = (key: string, expiresAtMs: number): ReceiptRow => ({
    principalId: 'p',
    key,
    digest: 'd',
    conversationRef: 'cv_x',
    state: 'ended',
    bootId: '',
    outcomeJson: null,
    createdAtMs: 0,
    expiresAtMs,
  });
  await db.write(keepReceipt, row('old', clock.now()));
  await db.write(keepReceipt, row('next', clock.now() + 1));
  await using another = createReceipts({ db, clock, log: silentLog, bootId: 'boot', execute });
  await expect.poll(() => db.read(count, undefined)).toBe(1);
  clock.advance(3_600_000);
  await expect.poll(() => db.read(count, undefined)).toBe(0);
  expect(another.api).toBeDefined();
});

it('aborts running turns on disposal and waits for them', async () => {
  const reader = await ask('k');
  const turn = await begun(1);
  await receipts[Symbol.asyncDispose]();
  expect(turn.signal.reason).toMatchObject({ code: 'unavailable' });
  expect(await reader.outcome).toMatchObject({ finishReason: 'aborted' });
});
