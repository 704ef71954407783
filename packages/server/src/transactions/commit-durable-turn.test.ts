import { fixed } from '../kernel/config/live.ts';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { AgentConfig } from '@gatehouse/contract';
import { createStepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { abortOpenTurns } from './open-work.ts';
import { checkpointTurn, commitDurableTurn, openDurableTurn, reserveForDurable } from './commit-durable-turn.ts';
import { commitTurn, openTurn } from './commit-turn.ts';
import type { Agent } from '../features/agents/agents/api.ts';
import { LedgerBudget } from '../features/access/budgets/limits/turn-budget.ts';
import { Ledger } from '../features/access/budgets/limits/ledger.ts';
import type { WorkHandler, WorkItem } from '../features/unattended/durable/api.ts';
import { endWork } from './end-interrupted-turn.ts';
import { createDurable } from '../features/unattended/durable/durable.ts';
import { acceptWork } from '../features/unattended/durable/store.ts';
import type { DurableTurn } from '../features/conversations/turns/api.ts';
import { OpenDurableTurn } from '../features/conversations/turns/durable/durable.ts';
import { createAdmissions } from '../features/conversations/turns/lanes/admission.ts';
import { createTurnRunner } from '../features/conversations/turns/running/turn-runner.ts';
import type { CallContext } from '../kernel/call-context.ts';
import type { Db } from '../kernel/db/db.ts';
import { operation } from '../kernel/db/operation.ts';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { createEventBus } from '../kernel/event-bus.ts';
import { silentLog } from '../kernel/log.ts';
import { ModelError } from '../llm/model.ts';
import type { Models } from '../llm/models.ts';
import { createFence } from '../runtime/fence.ts';
import { createRunTurn } from '../runtime/run-turn.ts';
import { testModel } from '../runtime/testing.ts';
import type { Tool } from '../runtime/tool.ts';
import { migrations, operations } from './registry.ts';

const accept = operation('test.accept', acceptWork);
const state = operation('test.state', async (tx) => ({
  work: await tx.build<{ state: string; errorKind: string | null; attempts: number; resumes: number }>((db) =>
    db.selectFrom('workItem').select(['state', 'errorKind', 'attempts', 'resumes']),
  ),
  turns: await tx.build<{ id: string; state: string; costNano: number | null; reservedNano: number | null; inputTokens: number }>((db) =>
    db.selectFrom('turn').select(['id', 'state', 'costNano', 'reservedNano', 'inputTokens']),
  ),
  calls: await tx.build<{ turnId: string; costNano: number | null; inputTokens: number; operation: string; ref: string | null; outcome: string }>(
    (db) => db.selectFrom('modelCall').select(['turnId', 'costNano', 'inputTokens', 'operation', 'conversationRef as ref', 'outcome']),
  ),
  conversations: await tx.build<{ costNano: number; inputTokens: number }>((db) => db.selectFrom('conversation').select(['costNano', 'inputTokens'])),
  messages: await tx.build<{ role: string; content: string }>((db) => db.selectFrom('message').select(['role', 'content']).orderBy('seq')),
  audits: await tx.build<{ action: string; target: string | null }>((db) => db.selectFrom('audit').select(['action', 'target'])),
  left: (
    await tx.build<{ rows: number }>((db, sql) =>
      db.selectNoFrom(
        sql<number>`(select count(*) from durable_turn) + (select count(*) from turn_step) + (select count(*) from turn_intent)`.as('rows'),
      ),
    )
  )[0]?.rows,
}));

/** When a process dies: at a write, before or after it is committed, or while something runs outside. */
type Kill = { readonly write: number; readonly committed: boolean } | { readonly during: 'model' | 'look' | 'charge'; readonly time: number };

/** A process as seen by the database and the outside world; after its death nothing that it does has an effect. */
class Process {
  readonly #kill: Kill | undefined;
  readonly death = Promise.withResolvers<undefined>();
  writes = 0;
  isDead = false;
  readonly #seen = { model: 0, look: 0, charge: 0 };

  constructor(kill?: Kill) {
    this.#kill = kill;
  }

  die(): Promise<never> {
    this.isDead = true;
    this.death.resolve(undefined);
    return new Promise(() => {});
  }

  /** Called before something happens outside. */
  passes(what: 'model' | 'look' | 'charge'): Promise<unknown> | undefined {
    this.#seen[what] += 1;
    const kill = this.#kill;
    if (this.isDead) return this.die();
    return kill !== undefined && 'during' in kill && kill.during === what && kill.time === this.#seen[what] ? this.die() : undefined;
  }

  mortal(db: Db): Db {
    return {
      ...db,
      read: (op, input) => (this.isDead ? this.die() : db.read(op, input)),
      write: async (op, input) => {
        if (this.isDead) return this.die();
        this.writes += 1;
        const kill = this.#kill;
        const isLast = kill !== undefined && 'write' in kill && kill.write === this.writes;
        if (isLast && !kill.committed) return this.die();
        const output = await db.write(op, input);
        return isLast ? this.die() : output;
      },
    };
  }
}

const agentConfig = AgentConfig.parse({ tools: { profile: 'full' }, budgets: { perDayUsd: 100 } });
const agent: Agent = { id: 'default', config: agentConfig, source: 'file', suspended: false, isDefault: true, workspaceDir: '/nonexistent' };
const target = { ref: `cv_${'x'.repeat(43)}`, sessionKey: 'hook:x', agentId: 'default', principalId: 'webhook:x' };
const question = 'Charge the card.';
const clock = createStepClock();
const usage = { input: 100, output: 10, cacheRead: 0, cacheWrite: 0, estimated: false };
const costOfCall = 120_000;

/** Effects seen by the outside world, whichever process caused them. */
interface World {
  charged: number;
  looked: number;
  asked: number;
  /** The step whose answer does not arrive before the turn is stopped. */
  readonly stallsAt?: number;
}

/** The model's answers depend on what it is sent, not on how often it is asked. */
const script = [
  [['look', {}]],
  [
    ['charge', { amount: 3 }],
    ['look', { at: 'home' }],
  ],
  [],
] as const;

function modelsOf(process: Process, world: World): Pick<Models, 'generate'> {
  return {
    async generate(call) {
      world.asked += 1;
      await process.passes('model');
      const step = call.request.messages.filter((message) => message.role === 'assistant' && message.toolCalls !== undefined).length;
      if (step === world.stallsAt) {
        await once(call.request.signal, 'abort');
        throw new ModelError('aborted', 'aborted');
      }
      const toolCalls = (script[step] ?? []).map(([name, args], index) => ({ id: `c${step}_${index}`, name, arguments: JSON.stringify(args) }));
      call.onAttempt({ model: testModel, usage, latencyMs: 1, startedAtMs: clock.now(), outcome: 'ok', responseId: 'r' });
      return {
        model: testModel,
        result: { text: step === 2 ? 'All done.' : '', toolCalls, finish: toolCalls.length > 0 ? 'tool_calls' : 'stop', usage },
      };
    },
  };
}

function toolsOf(process: Process, world: World): Tool[] {
  return [
    {
      name: 'look',
      description: 'Looks.',
      args: z.strictObject({ at: z.string().optional() }),
      risk: 'read',
      effect: 'pure',
      timeoutMs: 60_000,
      async run() {
        world.looked += 1;
        await process.passes('look');
        return { content: 'seen' };
      },
    },
    {
      name: 'charge',
      description: 'Charges the card.',
      args: z.strictObject({ amount: z.number() }),
      risk: 'read',
      effect: 'once',
      timeoutMs: 60_000,
      async run() {
        world.charged += 1;
        await process.passes('charge');
        return { content: 'charged' };
      },
    },
  ];
}

interface Booted {
  readonly durable: ReturnType<typeof createDurable>;
  readonly outcomes: Awaited<ReturnType<ReturnType<typeof createTurnRunner>['run']>>[];
}

let boots = 0;
let db: Db;

async function boot(process: Process, world: World, wishes: Partial<DurableTurn> = {}): Promise<Booted> {
  const bootId = `boot_${(boots += 1)}`;
  const mortal = process.mortal(db);
  const bus = createEventBus(() => {});
  const outcomes: Booted['outcomes'] = [];
  const ledger = new Ledger({
    clock,
    overall: fixed({}),
    budgetsOf: () => agentConfig.budgets,
    onSpend: () => {},
    warn: () => {},
  });
  const admissions = createAdmissions();
  const runner = createTurnRunner({
    memory: { attribute() {} },
    skills: { ended() {} },
    db: mortal,
    bus,
    clock,
    bootId,
    traces: { ofTurn: () => undefined, running: () => ({ [Symbol.dispose]() {} }), record() {}, work() {} },
    runTurn: createRunTurn({ models: modelsOf(process, world), clock, fence: createFence({ key: Buffer.alloc(32) }), log: silentLog }),
    openTurn,
    commitTurn,
    background: { markCall: () => expect.unreachable(), reported() {}, release() {} },
    autonomy: { begin: () => undefined, end() {}, capped: (budget) => budget, cappedPart: (budget) => budget, booking: () => [] },
    openCalls: () => ({ begin() {}, add() {}, settle() {}, keep() {}, close() {} }),
    budgetOf: (payer, store, { used }) => new LedgerBudget(ledger, payer, store, { used }),
  });
  const handler: WorkHandler = async (item: WorkItem, signal) => {
    const call: CallContext = {
      identity: { principalId: 'webhook:x', tokenId: 'webhook:x', scopes: ['rpc'] },
      traceId: '0'.repeat(32),
      requestId: 'rq_1',
      signal,
      transport: 'process',
    };
    const turn: DurableTurn = {
      workId: item.id,
      owner: item.owner,
      fence: item.fence,
      origin: 'cron' as const,
      target,
      message: question,
      kept: true,
      operation: 'cron',
      settle: ({ failure }) => (failure === undefined ? { state: 'done', result: 'fine' } : { state: 'failed', errorKind: failure.kind }),
      ...wishes,
    };
    const start = {
      id: `tn_${(boots += 1)}`,
      conversationRef: target.ref,
      sessionKey: target.sessionKey,
      agentId: 'default',
      principalId: target.principalId,
      origin: 'cron' as const,
      traceId: call.traceId,
      startedAtMs: clock.now(),
      bootId,
    };
    const deps = {
      db: mortal,
      clock,
      bus,
      openDurableTurn,
      checkpointTurn,
      reserveForDurable,
      commitDurableTurn,
      parked: async () => {},
      continued: () => {},
      booking: () => [],
      turnEnded: () => {},
    };
    return admissions.admit({ agentId: 'default', conversationRef: target.ref }, call, async (admitted) => {
      const opened = await OpenDurableTurn.open(deps, turn, start, admitted);
      const outcome = await runner.run(
        {
          target,
          agent,
          origin: 'cron' as const,
          ask: { models: [testModel], tools: toolsOf(process, world), system: ['You are Gate.'] },
          history: [],
          brought: [{ role: 'user', content: question }],
          question: { text: question },
          kept: true,
          durable: opened,
        },
        admitted,
        undefined,
      );
      outcomes.push(opened.ended(outcome));
      return 'settled' as const;
    });
  };
  const durable = createDurable({ db: mortal, clock, log: silentLog, bootId, endWork });
  durable.api.handle('test', handler, { concurrency: 2, maxAttempts: 3 });
  await Promise.race([mortal.write(abortOpenTurns, { atMs: clock.now() }).then(() => durable.api.start()), process.death.promise]);
  return { durable, outcomes };
}

const isOver = async () => (await db.read(state, undefined)).work.every((work) => !['accepted', 'running'].includes(work.state));
const over = () => expect.poll(isOver, { interval: 5 }).toBe(true);

beforeEach(async () => {
  db = await openInlineDb({ operations: [...operations, accept, state], migrations });
  const digest = hash('sha256', question);
  await db.write(accept, { id: 'wi_1', kind: 'test', key: 'k', digest, agentId: 'default', payload: null, atMs: clock.now() });
});
afterEach(() => db[Symbol.asyncDispose]());

/** Checks everything that must hold whatever happened on the way. */
async function checkEnd(world: World, charged = 1): Promise<'done' | 'unknown'> {
  const { work, turns, calls, conversations, messages, audits, left } = await db.read(state, undefined);
  const [item] = work;
  expect(work).toHaveLength(1);
  expect(turns).toHaveLength(1);
  expect(left).toBe(0);
  expect(world.charged).toBe(charged);
  expect(messages.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual([question]);
  const spent = calls.reduce((sum, call) => sum + (call.costNano ?? 0), 0);
  // A call whose end nobody saw is charged with its reserve, which is more.
  expect(spent).toBeGreaterThanOrEqual(world.asked * costOfCall);
  expect(calls.filter(({ outcome }) => outcome === 'ok').every(({ costNano }) => costNano === costOfCall)).toBe(true);
  // The reserve of a call that was never sent is spent too.
  expect(calls.length - world.asked).toBeOneOf([0, 1]);
  expect(new Set(calls.map(({ operation: booked }) => booked))).toEqual(new Set(['cron']));
  expect(new Set(calls.map(({ ref }) => ref))).toEqual(new Set([target.ref]));
  expect(turns[0]).toMatchObject({ costNano: spent, reservedNano: null, inputTokens: calls.reduce((sum, call) => sum + call.inputTokens, 0) });
  expect(conversations).toEqual([{ costNano: spent, inputTokens: turns[0]?.inputTokens }]);
  if (item?.state === 'done') {
    expect(turns[0]?.state).toBe('completed');
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'tool', 'tool', 'assistant']);
    expect(messages.at(-1)?.content).toBe('All done.');
    expect(audits).toEqual([]);
    return 'done';
  }
  expect(item).toMatchObject({ state: 'unknown', errorKind: 'unknown' });
  expect(turns[0]?.state).toBe('unknown');
  expect(messages.at(-1)?.content).toContain('"charge" was running; it may or may not have taken effect');
  expect(audits).toEqual([{ action: 'turn.unknown', target: turns[0]?.id }]);
  return 'unknown';
}

describe('a turn whose process dies', () => {
  test('undisturbed does its work once, and writes no more than its steps need', async () => {
    const world = { charged: 0, looked: 0, asked: 0 };
    const process = new Process();
    const { durable } = await boot(process, world);
    await using _ = durable;
    await over();
    expect(await checkEnd(world)).toBe('done');
    expect(world).toEqual({ charged: 1, looked: 2, asked: 3 });
    // abortOpen, takeOver, claim, open; reserve, step; reserve, intent, its end, step; reserve, commit.
    expect(process.writes).toBe(12);
    await expect.poll(durable.api.counts).toEqual({ running: 0 });
  });

  const kills: Kill[] = [
    ...Array.from({ length: 12 }, (_, index) => [
      { write: index + 1, committed: false },
      { write: index + 1, committed: true },
    ]).flat(),
    ...([1, 2, 3] as const).map((time) => ({ during: 'model' as const, time })),
    ...([1, 2] as const).map((time) => ({ during: 'look' as const, time })),
    { during: 'charge', time: 1 },
  ];

  test.each(kills)('%o: it is resumed or marked unknown, and nothing is done twice', async (kill) => {
    const world = { charged: 0, looked: 0, asked: 0 };
    const first = new Process(kill);
    await boot(first, world);
    await first.death.promise;
    const second = new Process();
    const { durable } = await boot(second, world);
    await using _ = durable;
    await over();
    // An intent whose tool did not start looks the same as one whose end was not stored.
    const intentAlone = 'write' in kill && kill.write === 8 && kill.committed;
    const endNotStored = 'during' in kill ? kill.during === 'charge' : kill.write === 9 && !kill.committed;
    expect(await checkEnd(world, intentAlone ? 0 : 1)).toBe(intentAlone || endNotStored ? 'unknown' : 'done');
  });

  test('over which four processes died is given up, and its conversation is notified', async () => {
    const world = { charged: 0, looked: 0, asked: 0 };
    for (let n = 0; n < 4; n += 1) {
      const dying = new Process({ during: 'look', time: 1 });
      await boot(dying, world);
      await dying.death.promise;
    }
    const { durable, outcomes } = await boot(new Process(), world);
    await using _ = durable;
    await over();
    const { work, turns, messages, audits } = await db.read(state, undefined);
    expect(work).toEqual([{ state: 'failed', errorKind: 'too_many_resumes', attempts: 1, resumes: 4 }]);
    expect(turns).toMatchObject([{ state: 'failed' }]);
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
    expect(messages[1]?.content).toContain('stopped 4 times during this task');
    expect(audits).toMatchObject([{ action: 'turn.given_up' }]);
    await expect.poll(() => outcomes).toMatchObject([{ settled: true, state: 'failed', failure: { kind: 'too_many_resumes' } }]);
  });

  test('that a stop interrupts continues after each of ten restarts: a stop is not a crash', async () => {
    const world = { charged: 0, looked: 0, asked: 0 };
    for (let n = 0; n < 10; n += 1) {
      const stalling = { ...world, stallsAt: 1 };
      const { durable } = await boot(new Process(), stalling);
      // The first one has a step before the one that stalls.
      await expect.poll(() => stalling.asked).toBe(n === 0 ? 2 : 1);
      await durable[Symbol.asyncDispose]();
    }
    const stopped = await db.read(state, undefined);
    expect(stopped.work).toMatchObject([{ state: 'running', attempts: 1 }]);
    expect(stopped.calls.map(({ outcome }) => outcome)).toEqual(['ok']);
    const { durable } = await boot(new Process(), world);
    await using _ = durable;
    await over();
    expect(await checkEnd({ ...world, asked: world.asked + 1 })).toBe('done');
  });
});
