import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { keepRoots, recoverRoots } from '../features/delegation/autonomy/roots/life-store.ts';
import { beginReceipt } from '../features/conversations/receipts/store.ts';
import type { ReceiptRow } from '../features/conversations/receipts/api.ts';
import type { TurnRow } from '../features/conversations/turns/store.ts';
import { addTask, endTask, recoverTasks, type TaskRow } from '../features/environment/background/store.ts';
import { createNodes, leaseMs, type Nodes } from '../features/operations/nodes/nodes.ts';
import { ageNodes } from '../features/operations/nodes/testing/boots.ts';
import type { WorkItem } from '../features/unattended/durable/api.ts';
import { createDurable, type Durable } from '../features/unattended/durable/durable.ts';
import { acceptWork } from '../features/unattended/durable/store.ts';
import type { HeartbeatStateRow } from '../features/unattended/heartbeat/store.ts';
import type { Db } from '../kernel/db/db.ts';
import { operation, raw } from '../kernel/db/operation.ts';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { silentLog } from '../kernel/log.ts';
import { commitTurn, openTurn } from './commit-turn.ts';
import { endWork } from './end-interrupted-turn.ts';
import { readUnfinished } from './finish-occurrence.ts';
import { beginBeat, recoverBeats } from './heartbeat-work.ts';
import { abortOpenTurns } from './open-work.ts';
import { beginScript, endScript } from './orchestrate-work.ts';
import { migrations, operations } from './registry.ts';

const accept = operation('test.accept', async (tx, works: readonly Parameters<typeof acceptWork>[1][]) => {
  for (const work of works) await acceptWork(tx, work);
});

const tables = ['turn', 'model_call', 'work_item', 'root_run', 'lease', 'background_task', 'heartbeat_beat', 'heartbeat_state', 'receipt'];
/** All rows that a daemon owns, by the names of the database. */
const dump = operation('test.dump', async (tx) => {
  const rows: Record<string, unknown> = {};
  for (const table of tables) rows[table] = await tx.build<object>((db, sql) => raw(db, sql`select * from ${sql.table(table)}`));
  return rows;
});

const items = 20;
const clock = createStepClock();
let dataDir: string;
const open: AsyncDisposable[] = [];
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-owners-'));
});
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
  await rm(dataDir, { recursive: true });
});

let last: Promise<unknown> = Promise.resolve();
/** Runs one transaction at a time: the connections are on one thread, where waiting for the lock of another one would never end. */
function alone<T>(run: () => Promise<T>): Promise<T> {
  const next = last.then(run, run);
  last = next.catch(() => {});
  return next;
}

/** A daemon on a database that it shares with others. It can be frozen, as by SIGSTOP: then its writes arrive after it continues. */
class Daemon implements AsyncDisposable {
  readonly bootId: string;
  readonly db: Db;
  readonly nodes: Nodes;
  readonly durable: Durable;
  readonly ran: WorkItem[] = [];
  readonly tasks: TaskRow[] = [];
  recoveries = 0;
  readonly #gate: { open: Promise<void> };
  #goOn = () => {};

  private constructor(bootId: string, db: Db, gate: { open: Promise<void> }, nodes: Nodes) {
    this.bootId = bootId;
    this.db = db;
    this.#gate = gate;
    this.nodes = nodes;
    this.durable = createDurable({ db, clock, log: silentLog, bootId, endWork });
    this.durable.api.handle(
      'mail',
      (item, signal) => {
        this.ran.push(item);
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve('settled')));
      },
      { concurrency: items, maxAttempts: 3 },
    );
  }

  static async start(bootId: string): Promise<Daemon> {
    const real = await openInlineDb({ dataDir, migrations, operations: [...operations, accept, dump, ageNodes] });
    open.push(real);
    const gate = { open: Promise.resolve() };
    const db: Db = {
      ...real,
      write: (op, input) => gate.open.then(() => alone(() => real.write(op, input))),
      read: (op, input) => gate.open.then(() => alone(() => real.read(op, input))),
    };
    const nodes = await createNodes({ db, clock, log: silentLog, bootId, homeId: bootId, isSole: false, version: 'test' });
    const daemon = new Daemon(bootId, db, gate, nodes);
    open.push(nodes, daemon);
    await daemon.#recover();
    await daemon.durable.api.start();
    nodes.api.onClaimed(() => daemon.#recover());
    nodes.api.onClaimed(() => daemon.durable.recover());
    return daemon;
  }

  freeze(): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#gate.open = promise;
    this.#goOn = resolve;
  }

  goOn(): void {
    this.#goOn();
  }

  async #recover(): Promise<void> {
    const { db, bootId } = this;
    const atMs = clock.now();
    this.recoveries += 1;
    await db.write(abortOpenTurns, { atMs });
    await db.write(recoverRoots, { atMs, sinceMs: 0, limit: 100 });
    this.tasks.push(...(await db.write(recoverTasks, { bootId, atMs, content: 'unknown' })));
    expect(await db.read(readUnfinished, { limit: 10 })).toEqual([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.goOn();
    await this.durable[Symbol.asyncDispose]();
  }
}

const about = { agentId: 'default', principalId: 'root', conversationRef: 'cv_1' };
const turnOf = (id: string, bootId: string, more: Partial<TurnRow> = {}): TurnRow => ({
  ...about,
  id,
  sessionKey: 'a:b',
  origin: 'api',
  state: 'running',
  finishReason: null,
  failureKind: null,
  model: 'p/m',
  steps: 0,
  inputTokens: 0,
  outputTokens: 0,
  costNano: null,
  reservedNano: null,
  traceId: '0'.repeat(32),
  startedAtMs: 1,
  endedAtMs: null,
  bootId,
  ...more,
});
const rootRunId = 'root-turn-tn_1';
const script = (bootId: string) => ({
  root: { ...about, rootRunId, kind: 'script' as const, origin: 'rpc' as const, profile: 'standard' as const, atMs: 1 },
  lease: {
    ...about,
    id: `ls_${bootId}`,
    rootRunId,
    parentLeaseId: null,
    runId: 'sc_1',
    caps: ['orch:read' as const],
    issuedAtMs: 1,
    expiresAtMs: Number.MAX_SAFE_INTEGER,
    bearerDigest: `digest of ${bootId}`,
    bootId,
  },
});
const scriptEnd = (bootId: string) => ({
  leaseId: `ls_${bootId}`,
  bootId,
  root: { rootRunId, kind: 'script' as const, failed: false, tokens: 0, costNano: 0, atMs: 2 },
});
const task = (bootId: string): TaskRow => ({
  ...about,
  id: `bt_${bootId}`,
  sessionKey: 'a:b',
  tokenId: 'root',
  turnId: 'tn_1',
  rootRunId,
  traceId: '0'.repeat(32),
  toolName: 'exec',
  description: 'exec',
  begunBy: 'rpc',
  chain: 0,
  state: 'running',
  outcome: null,
  content: null,
  startedAtMs: 1,
  endedAtMs: null,
  bootId,
});
const receipt = (bootId: string): ReceiptRow => ({
  principalId: 'root',
  key: 'k',
  digest: 'd',
  conversationRef: '',
  state: 'running',
  bootId,
  outcomeJson: null,
  createdAtMs: clock.now(),
  expiresAtMs: clock.now() + 1_000_000,
});
const begin = (bootId: string) => ({ row: receipt(bootId), ageNowMs: clock.now() });
const state = (lastSlotMs: number): HeartbeatStateRow => ({
  agentId: 'default',
  lastSlotMs,
  lastRunAtMs: 1,
  consecutiveErrors: 0,
  backoffUntilMs: null,
  lastErrorKind: null,
  lastAlertAtMs: null,
  stoppedBy: null,
  stoppedUnder: null,
});
/** The beat that a timer of the daemon starts for a due time. */
const beat = (bootId: string, dueAtMs: number) => {
  const workId = `wi_beat_${bootId}_${dueAtMs}`;
  const key = { id: workId, kind: 'heartbeat', key: workId, digest: 'd', agentId: 'default', payload: null, atMs: 1 };
  const row = {
    workId,
    agentId: 'default',
    correlationId: 'hw_1',
    lane: 'normal' as const,
    reason: 'interval' as const,
    eventCount: 0,
    startedAtMs: 1,
  };
  return { beat: { ...row, bootId }, state: state(dueAtMs), isPlanned: true, lastEventId: 0, work: key };
};

/** Passes the time in steps, so that each timer on the way runs and its writes are made. */
async function pass(ms: number, db: Db): Promise<void> {
  for (let passed = 0; passed < ms; passed += 500) {
    await db.write(ageNodes, { ms: 500 });
    clock.advance(500);
    for (let n = 0; n < 3; n += 1) await db.read(dump, undefined);
  }
}

async function startWorking(): Promise<Daemon> {
  const first = await Daemon.start('first');
  const work = (n: number) => ({ id: `wi_${n}`, kind: 'mail', key: `${n}`, digest: 'd', agentId: null, payload: null, atMs: clock.now() });
  await first.db.write(
    accept,
    Array.from({ length: items }, (_, n) => work(n)),
  );
  await expect.poll(() => (first.durable.api.wake('mail'), first.ran.length)).toBe(items);
  await first.db.write(openTurn, { turn: turnOf('tn_1', 'first', { reservedNano: 500 }) });
  await first.db.write(beginScript, script('first'));
  await first.db.write(addTask, { row: task('first'), ageNowMs: 0 });
  await first.db.write(beginReceipt, begin('first'));
  expect(await first.db.write(beginBeat, beat('first', 1_000))).toBe(true);
  return first;
}

test('a daemon that starts while another one works touches nothing of it, however long both run', async () => {
  const first = await startWorking();
  const before = await first.db.read(dump, undefined);
  const second = await Daemon.start('second');
  expect(await first.db.read(dump, undefined)).toEqual(before);
  expect(await second.db.write(beginReceipt, begin('second'))).toMatchObject({ isElsewhere: true });
  // Its timer for the same beat fires too.
  expect(await second.db.write(beginBeat, beat('second', 1_000))).toBe(false);
  await pass(15_000, first.db);
  expect(await first.db.read(dump, undefined)).toEqual(before);
  // It knows less of the root than the one whose work it is.
  for (const [by, tokens] of [[first, 50] as const, [second, 0] as const])
    await by.db.write(keepRoots, { atMs: 2, spent: [{ id: rootRunId, tokens, nano: tokens, activeMs: tokens, unpriced: false }] });
  expect(await first.db.read(dump, undefined)).toMatchObject({ root_run: [{ spent_tokens: 50, spent_nano: 50, active_ms: 50, open_scripts: 1 }] });
  expect([first.recoveries, second.recoveries, second.ran.length, second.tasks.length]).toEqual([1, 1, 0, 0]);
  expect([first.nodes.api.fault(), second.nodes.api.fault()]).toEqual([undefined, undefined]);
  // Each still ends its own.
  await first.db.write(endScript, scriptEnd('first'));
  expect(
    await first.db.write(commitTurn, { turn: turnOf('tn_1', 'first', { state: 'completed', endedAtMs: 3 }), calls: [], conversation: null }),
  ).toEqual({
    created: false,
  });
});

test('once the lease of a frozen daemon has lapsed, another one continues everything once, and refuses what the first one writes late', async () => {
  const first = await startWorking();
  const second = await Daemon.start('second');
  first.freeze();
  await pass(leaseMs - 3_000, second.db);
  expect([second.recoveries, second.ran.length]).toEqual([1, 0]);
  await pass(9_000, second.db);
  expect(second.recoveries).toBe(2);
  await expect.poll(() => second.ran.length).toBe(items);
  expect(second.ran.every(({ resumed, fence }) => resumed && fence > 1)).toBe(true);
  expect(second.tasks).toMatchObject([{ id: 'bt_first', state: 'ended', outcome: 'unknown', bootId: 'second' }]);
  expect(await second.db.write(beginReceipt, begin('second'))).toBeUndefined();
  expect((await second.db.read(recoverBeats, {})).map(({ beat: { workId } }) => workId)).toEqual(['wi_beat_first_1000']);
  const taken = await second.db.read(dump, undefined);
  expect(taken).toMatchObject({
    turn: [{ id: 'tn_1', state: 'aborted', cost_nano: 500 }],
    model_call: [{ turn_id: 'tn_1', cost_nano: 500 }],
    root_run: [{ open_scripts: 0, state: 'orphaned' }],
    receipt: [{ state: 'running', boot_id: 'second' }],
  });

  first.goOn();
  const late = [
    first.db.write(commitTurn, { turn: turnOf('tn_1', 'first', { state: 'completed', costNano: 7, endedAtMs: 3 }), calls: [], conversation: null }),
    first.db.write(endScript, scriptEnd('first')),
    first.db.write(endTask, { id: 'bt_first', outcome: 'ok', content: 'late', atMs: 3, state: 'ended' }),
    ...first.ran.map(({ id, owner, fence }) => first.db.write(endWork, { id, owner, fence, state: 'done', atMs: 3 })),
  ];
  expect(await Promise.all(late)).toEqual([{ created: false, isRefused: true }, undefined, false, ...first.ran.map(() => false)]);
  await expect(first.db.write(beginScript, script('first again'))).rejects.toMatchObject({ code: 'unavailable' });
  await expect(first.db.write(openTurn, { turn: turnOf('tn_2', 'first') })).rejects.toMatchObject({ code: 'unavailable' });
  const withoutLeases = ({ work_item: _, ...rows }: Record<string, unknown>) => rows;
  expect(withoutLeases(await second.db.read(dump, undefined))).toEqual(withoutLeases(taken));
  // It finds out with its next renewal.
  await pass(4_000, second.db);
  expect([first.nodes.api.fault() !== undefined, second.nodes.api.fault()]).toEqual([true, undefined]);
  // The holder of the work ends it.
  const ended = second.ran.map(({ id, owner, fence }) => second.db.write(endWork, { id, owner, fence, state: 'done', atMs: 4 }));
  expect(new Set(await Promise.all(ended))).toEqual(new Set([true]));
  expect(second.ran).toHaveLength(items);
});
