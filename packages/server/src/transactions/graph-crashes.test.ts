import { AgentConfig, GraphNode, type Params } from '@gatehouse/contract';
import { createStepClock, type StepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import type { Agent, AgentsApi } from '../features/agents/agents/api.ts';
import type { RootStop } from '../features/delegation/autonomy/api.ts';
import { createDurable } from '../features/unattended/durable/durable.ts';
import { endWork } from './end-interrupted-turn.ts';
import { createGraphs } from '../features/delegation/graph/graph.ts';
import { answerGate, cancelGraph } from '../features/delegation/graph/store.ts';
import type { RunEnd, SubagentsApi } from '../features/delegation/subagents/api.ts';
import { endWorkWithMessage } from './end-interrupted-turn.ts';
import { acceptGraph, closeGraph, graphsOfRoot, moveGraphNodes } from './graph-work.ts';
import { AppError } from '../kernel/app-error.ts';
import type { CallContext } from '../kernel/call-context.ts';
import type { Db } from '../kernel/db/db.ts';
import { operation } from '../kernel/db/operation.ts';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { createEventBus } from '../kernel/event-bus.ts';
import { silentLog } from '../kernel/log.ts';
import { migrations, operations } from './registry.ts';

interface Left {
  readonly graphs: { state: string; cancelReason: string | null }[];
  readonly nodes: { nodeId: string; state: string; output: string | null }[];
  readonly work: { state: string }[];
  readonly roots: { state: string; openGraphs: number }[];
  readonly inbox: { text: string }[];
}

const left = operation('test.left', async (tx): Promise<Left> => ({
  graphs: await tx.build((db) => db.selectFrom('graphRun').select(['state', 'cancelReason'])),
  nodes: await tx.build((db) => db.selectFrom('graphNode').select(['nodeId', 'state', 'output']).orderBy('place')),
  work: await tx.build((db) => db.selectFrom('workItem').select('state').where('kind', '=', 'graph')),
  roots: await tx.build((db) => db.selectFrom('rootRun').select(['state', 'openGraphs'])),
  inbox: await tx.build((db) => db.selectFrom('inboxMessage').select('text')),
}));

/** Sub-agents as a graph sees them: runs by key, which outlive every process. */
interface World {
  readonly runs: Map<string, { readonly runId: string; readonly end: Omit<RunEnd, 'runId'> }>;
  starts: number;
  /** The broken build: keys mean nothing. */
  readonly isForgetful: boolean;
}

function endOf(key: string): Omit<RunEnd, 'runId'> {
  // The first attempt of the first node fails.
  const failed = key.includes('/a/1/');
  return {
    conversationRef: `cv_${'x'.repeat(43)}`,
    tainted: false,
    cause: null,
    text: failed ? '' : `said ${key.split('/').slice(1).join(' ')}`,
    completion: failed ? { endReason: 'failed', completedAtMs: 1, errorKind: 'server' } : { endReason: 'completed', completedAtMs: 1 },
    telemetry: { tokensUsedTotal: 10, costTotal: 0.001, finishReason: 'stop', stepsExecuted: 1, cacheReadTokens: 0, cacheWriteTokens: 0 },
  };
}

/** A process as seen by the database and the outside world; after its death nothing that it does has an effect. */
class Process {
  readonly #kill: { readonly write: number; readonly committed: boolean } | undefined;
  readonly #onWrite: (write: number) => void;
  writes = 0;
  isDead = false;

  constructor(kill?: { readonly write: number; readonly committed: boolean }, onWrite: (write: number) => void = () => {}) {
    this.#kill = kill;
    this.#onWrite = onWrite;
  }

  die(): Promise<never> {
    this.isDead = true;
    return new Promise(() => {});
  }

  db(db: Db): Db {
    return {
      ...db,
      read: (op, input) => (this.isDead ? this.die() : db.read(op, input)),
      write: async (op, input) => {
        if (this.isDead) return this.die();
        if (!op.name.startsWith('graph.')) return db.write(op, input);
        this.writes += 1;
        this.#onWrite(this.writes);
        const isLast = this.#kill?.write === this.writes;
        if (isLast && this.#kill?.committed === false) return this.die();
        const output = await db.write(op, input);
        return isLast ? this.die() : output;
      },
    };
  }

  subagents(world: World): SubagentsApi {
    return {
      onWait: () => () => {},
      waitingOf: async () => [],
      said: async () => undefined,
      offerToNodes() {},
      start: async ({ key }) => {
        if (this.isDead) return this.die();
        const known = world.runs.get(key);
        if (known !== undefined && !world.isForgetful) return { runId: known.runId, isNew: false };
        world.starts += 1;
        const runId = `sr_${String(world.starts).padStart(36, '0')}`;
        world.runs.set(key, { runId, end: endOf(key) });
        return { runId, isNew: true };
      },
      ended: async (runId, signal) => {
        if (this.isDead) return this.die();
        await new Promise((resolve) => setImmediate(resolve));
        signal.throwIfAborted();
        const run = [...world.runs.values()].find((one) => one.runId === runId);
        if (run === undefined) throw new AppError('not_found', 'Unknown run');
        return { runId, ...run.end };
      },
      kill: async () => false,
      refusal: () => undefined,
      counts: () => ({ active: 0, max: 20, queued: 0 }),
      onStopped: () => {},
    };
  }
}

const agent: Agent = {
  id: 'default',
  config: AgentConfig.parse({}),
  source: 'file',
  suspended: false,
  isDefault: true,
  workspaceDir: '/nonexistent',
};
const agents: AgentsApi = { defaultId: 'default', list: () => [agent], find: () => agent, usable: () => agent };
const identity = { principalId: 'token:root', tokenId: 'root', scopes: ['*' as const] };
const call: CallContext = { identity, traceId: 't', requestId: 'r', signal: new AbortController().signal, transport: 'process' };
const parsed = (node: object) => GraphNode().parse(node);
const params: Params<'graph.execute'> = {
  nodes: [
    parsed({ node_id: 'a', task: 'A', agent: 'default', retries: 1 }),
    parsed({ node_id: 'b', task: 'B', depends_on: ['a'], type_id: 'debate', type_config: { agents: ['default', 'second'], rounds: 1 } }),
    parsed({ node_id: 'c', task: 'C {{b.result}}', agent: 'default', depends_on: ['b'] }),
  ],
  variables: {},
  node_progress: false,
};

async function begin(
  process: Process,
  bootId: string,
  { db: whole, clock, world }: { readonly db: Db; readonly clock: StepClock; readonly world: World },
) {
  const db = process.db(whole);
  const bus = createEventBus((error) => {
    throw error;
  });
  const completed: string[] = [];
  bus.listen(['graph:completed'], ({ payload }) => completed.push((payload as { status: string }).status));
  const durable = createDurable({ db, clock, log: silentLog, bootId, endWork });
  let stop: ((rootRunId: string, how: RootStop) => Promise<number> | number) | undefined;
  const graphs = createGraphs({
    db,
    bus,
    clock,
    log: silentLog,
    agents,
    subagents: process.subagents(world),
    authority: { covers: () => true },
    work: { tierOf: () => 'mid', generate: () => Promise.reject(new Error('no node asks for a summary')) },
    durable: durable.api,
    inbox: { deliverCall: () => expect.unreachable(), announce() {} },
    endpoints: { named: () => expect.unreachable(), address: () => expect.unreachable() },
    delivery: { sendCall: () => expect.unreachable(), wake() {} },
    chats: { gateCode: () => expect.unreachable(), buttonsOf: () => expect.unreachable() },
    autonomy: {
      onStop: (given) => void (stop = given),
      admit() {},
      standing: () => ({ profile: 'standard', caps: new Set() }),
      rootOf: () => 'root-1',
    },
    operations: { accept: acceptGraph, move: moveGraphNodes, close: closeGraph, endWithMessage: endWorkWithMessage, ofRoot: graphsOfRoot },
    sessions: { existing: () => Promise.reject(new AppError('not_found', 'none')) },
    turns: { announce: () => Promise.reject(new AppError('unavailable', 'none')) },
    identityOf: () => identity,
    fence: (text) => `<${text}>`,
    concurrency: () => 4,
    knowsModel: () => true,
    assertCanStart() {},
    assertCanDelegate() {},
    maxDepth: () => 3,
  });
  await durable.api.start();
  return {
    completed,
    execute: (given = params) => graphs.methods['graph.execute'](given, call),
    kill: async () => stop?.('root-1', 'kill'),
    async [Symbol.asyncDispose]() {
      if (!process.isDead) await graphs[Symbol.asyncDispose]();
      // A dead process never ends what it started: time passes until nobody waits for it.
      let isOver = false;
      const over = durable[Symbol.asyncDispose]().then(() => (isOver = true));
      if (process.isDead) return;
      await expect.poll(() => (clock.advance(1000), isOver)).toBe(true);
      await over;
    },
  };
}

const outputs = ['said a 2 0 0', '### default (round 1)\nsaid b 1 0 0\n\n### second (round 1)\nsaid b 1 1 0', 'said c 1 0 0'];
const whole = {
  graphs: [{ state: 'completed', cancelReason: null }],
  nodes: ['a', 'b', 'c'].map((nodeId, index) => ({ nodeId, state: 'completed', output: outputs[index] })),
  work: [{ state: 'done' }],
  roots: [{ state: 'completed', openGraphs: 0 }],
  inbox: [{ text: expect.stringContaining('has completed: 3 of 3') }],
};

/** A process dies at one of its writes, and another one continues; `died` is false when there are fewer writes. */
async function dieAt(write: number, committed: boolean, isForgetful = false) {
  const clock = createStepClock();
  const world: World = { runs: new Map(), starts: 0, isForgetful };
  await using db = await openInlineDb({ migrations, operations: [...operations, left] });
  const first = new Process({ write, committed });
  await using one = await begin(first, 'one', { db, clock, world });
  void one.execute().catch(() => {});
  await expect.poll(() => (clock.advance(500), first.isDead || one.completed.length > 0)).toBe(true);
  const promised = (await db.read(left, {})).graphs.length > 0;
  if (first.isDead && promised) {
    await using two = await begin(new Process(), 'two', { db, clock, world });
    await expect.poll(async () => (clock.advance(500), (await db.read(left, {})).graphs[0]?.state)).toBe('completed');
    expect(two.completed.length).toBeLessThanOrEqual(1);
  }
  return { died: first.isDead, promised, found: await db.read(left, {}), starts: world.starts };
}

test.each([
  ['before', false],
  ['after', true],
])(
  'whichever of its writes a process dies %s, the next one ends the graph once, and nothing is run twice',
  async (_, committed) => {
    for (let write = 1; ; write += 1) {
      const { died, promised, found, starts } = await dieAt(write, committed);
      if (!promised) {
        // Nothing was promised, and nothing is left.
        expect({ write, committed, found }).toEqual({ write: 1, committed: false, found: { graphs: [], nodes: [], work: [], roots: [], inbox: [] } });
        continue;
      }
      expect({ write, starts, ...found }).toEqual({ write, starts: 5, ...whole });
      if (died) continue;
      expect(write).toBeGreaterThan(10);
      return;
    }
  },
  120_000,
);

test('without run keys, runs are created twice, and the test notices', async () => {
  const starts: number[] = [];
  for (let write = 3; write < 9; write += 1) starts.push((await dieAt(write, false, true)).starts);
  expect(Math.max(...starts)).toBeGreaterThan(5);
}, 60_000);

test('a graph that is stopped at any of its writes has one end and one announcement', async () => {
  for (let at = 2; ; at += 1) {
    const clock = createStepClock();
    const world: World = { runs: new Map(), starts: 0, isForgetful: false };
    await using db = await openInlineDb({ migrations, operations: [...operations, left] });
    let stopping: Promise<number | undefined> | undefined;
    const process = new Process(undefined, (write) => {
      if (write === at) stopping ??= one.kill();
    });
    await using one = await begin(process, 'one', { db, clock, world });
    await one.execute();
    await expect.poll(() => (clock.advance(500), one.completed.length)).toBe(1);
    const stopped = await stopping;
    // Whatever still runs of it writes nothing more.
    for (let n = 0; n < 20; n += 1) {
      clock.advance(5_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const found = await db.read(left, {});
    expect({ at, inbox: found.inbox.length, roots: found.roots.map(({ openGraphs }) => openGraphs), ends: one.completed }).toEqual({
      at,
      inbox: 1,
      roots: [0],
      ends: [found.graphs[0]?.state],
    });
    expect(found.nodes.every(({ state }) => state === 'completed' || state === 'failed' || state === 'skipped')).toBe(true);
    if (stopping === undefined) {
      expect(at).toBeGreaterThan(10);
      return;
    }
    expect(found.graphs).toEqual([stopped === 1 ? { state: 'cancelled', cancelReason: 'killed' } : { state: 'completed', cancelReason: null }]);
  }
}, 120_000);

test('a graph that a person cancels before any of its writes is cancelled, and announced as cancelled', async () => {
  for (let at = 2; ; at += 1) {
    const clock = createStepClock();
    const world: World = { runs: new Map(), starts: 0, isForgetful: false };
    await using db = await openInlineDb({ migrations, operations: [...operations, left] });
    let cancelling: Promise<boolean> | undefined;
    let id = '';
    const process = new Process(undefined, (write) => {
      if (write === at) cancelling ??= db.write(cancelGraph, { id, reason: 'manual' });
    });
    await using one = await begin(process, 'one', { db, clock, world });
    id = (await one.execute()).graphId;
    await expect.poll(() => (clock.advance(500), one.completed.length)).toBe(1);
    const { graphs, inbox, work, roots } = await db.read(left, {});
    if ((await cancelling) !== true) {
      expect(at).toBeGreaterThan(10);
      return;
    }
    expect({ at, graphs, inbox, ends: one.completed, work, open: roots[0]?.openGraphs }).toEqual({
      at,
      graphs: [{ state: 'cancelled', cancelReason: 'manual' }],
      inbox: [{ text: expect.stringContaining('was cancelled (on request)') }],
      ends: ['cancelled'],
      work: [{ state: 'aborted' }],
      open: 0,
    });
  }
}, 120_000);

test('a gate times out while no process runs it: a later answer is ignored', async () => {
  const clock = createStepClock();
  const world: World = { runs: new Map(), starts: 0, isForgetful: false };
  await using db = await openInlineDb({ migrations, operations: [...operations, left] });
  // Dies when the question has been asked.
  const first = new Process({ write: 2, committed: true });
  await using one = await begin(first, 'one', { db, clock, world });
  const gate = parsed({ node_id: 'g', task: 'Sure?', type_id: 'approval-gate', type_config: { timeout_minutes: 2 } });
  const { graphId } = await one.execute({ ...params, nodes: [gate], announceChannelType: 'gateway', announceChannelId: 'inbox' });
  await expect.poll(() => (clock.advance(1), first.isDead)).toBe(true);
  const answer = () => db.write(answerGate, { graphId, nodeId: 'g', answer: 'approved', text: 'yes', atMs: clock.now() });
  clock.advance(121_000);
  expect(await answer()).toEqual({ answer: null, answerText: null, isNew: false });
  await using _two = await begin(new Process(), 'two', { db, clock, world });
  await expect.poll(async () => (clock.advance(500), (await db.read(left, {})).graphs[0]?.state)).toBe('failed');
  expect(await answer()).toMatchObject({ answer: 'expired', isNew: false });
});
