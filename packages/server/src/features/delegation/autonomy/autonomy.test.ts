import { fixed } from '../../../kernel/config/live.ts';
import { AgentConfig, type AutonomyProfile, type TurnOrigin } from '@gatehouse/contract';
import { createStepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { CallContext, CallingTurn } from '../../../kernel/call-context.ts';
import { auditMigrations } from '../../../kernel/db/audit.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { operation } from '../../../kernel/db/operation.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import { createEventBus } from '../../../kernel/event-bus.ts';
import { silentLog } from '../../../kernel/log.ts';
import { writeAudit } from '../../../kernel/audit.ts';
import type { CallRecord } from '../../../runtime/turn.ts';
import type { Agent } from '../../agents/agents/api.ts';
import type { NewLease, RootEntry, RootLeave, RootWorkKind } from './api.ts';
import { type Autonomy, createAutonomy } from './autonomy.ts';
import { AutonomyConfig } from './config.ts';
import { leaseOperations } from './roots/lease-store.ts';
import { readRoot, rootLifeOperations } from './roots/life-store.ts';
import { rootListOperations } from './roots/list-store.ts';
import { autonomyMigrations } from './migrations.ts';
import type { RunningTurn } from './methods.ts';
import { stopOperations } from './stops/stop-store.ts';
import { nodeMigrations } from '../../operations/nodes/migrations.ts';
import { endLease, enterRoot, issueLease, leaveRoot } from './store.ts';

const enter = operation('test.enter', enterRoot);
const leave = operation('test.leave', leaveRoot);
const issue = operation('test.issue', issueLease);
const end = operation('test.end', endLease);
/** Waiting work belongs to another feature. */
const nothingWaits = {
  findWaitingRoot: operation('test.findWaiting', async () => undefined),
  listWaitingRoots: operation('test.listWaiting', async () => ({ turns: [], total: 0, resuming: [] })),
  readRootWaits: operation('test.rootWaits', async () => new Map<string, never>()),
  readRootTasks: operation('test.rootTasks', async () => new Map<string, string>()),
};
const never = operation('test.deliver', async (): Promise<'accepted'> => {
  throw new Error('nothing is delivered here');
});

const clock = createStepClock();
const day = 24 * 3_600_000;
const root = 'root-rpc-1';
const agent: Agent = {
  id: 'default',
  config: AgentConfig.parse({}),
  source: 'file',
  suspended: false,
  isDefault: true,
  workspaceDir: '/nowhere',
};
const agents = {
  defaultId: 'default',
  list: () => [agent],
  find: (id: string) => (id === agent.id ? agent : undefined),
  usable: () => agent,
};

let db: Db;
let autonomy: Autonomy;
let turn: RunningTurn | undefined;

async function start(config: Parameters<ReturnType<typeof AutonomyConfig>['parse']>[0] = {}): Promise<Autonomy> {
  return createAutonomy({
    db,
    bus: createEventBus((error) => {
      throw error;
    }),
    clock,
    log: silentLog,
    traceWork: () => {},
    config: fixed(AutonomyConfig().parse(config)),
    agents,
    maxCostOf: (need) => ({ tokens: need.inputTokens + need.maxOutputTokens, nano: need.maxOutputTokens }),
    turnOf: () => turn,
    waitingOf: () => undefined,
    turns: () => [],
    operations: nothingWaits,
    deliver: never,
    rootsOfToken: async () => [],
    announceMessage() {},
  });
}

beforeEach(async () => {
  turn = undefined;
  db = await openInlineDb({
    migrations: [...auditMigrations, ...autonomyMigrations, ...nodeMigrations],
    operations: [
      ...Object.values(nothingWaits),
      ...leaseOperations,
      ...rootLifeOperations,
      ...rootListOperations,
      ...stopOperations,
      writeAudit,
      enter,
      leave,
      issue,
      end,
    ],
  });
  autonomy = await start();
});
afterEach(async () => {
  await autonomy[Symbol.asyncDispose]();
  await db[Symbol.asyncDispose]();
});

async function restart(config: Parameters<ReturnType<typeof AutonomyConfig>['parse']>[0] = {}): Promise<void> {
  await autonomy[Symbol.asyncDispose]();
  autonomy = await start(config);
}

const entry = (kind: RootWorkKind, rootRunId = root): RootEntry => ({
  rootRunId,
  kind,
  agentId: 'default',
  principalId: 'token:ada',
  conversationRef: null,
  origin: 'rpc' satisfies TurnOrigin,
  profile: 'standard' satisfies AutonomyProfile,
  atMs: clock.now(),
});
const leaving = (kind: RootWorkKind, more: Partial<RootLeave> = {}): RootLeave => ({
  rootRunId: root,
  kind,
  failed: false,
  tokens: 10,
  costNano: 5,
  atMs: clock.now(),
  ...more,
});
const lease = (id: string, more: Partial<NewLease> = {}): NewLease => ({
  id,
  rootRunId: root,
  parentLeaseId: null,
  runId: `sr_${id}`,
  agentId: 'default',
  principalId: 'token:ada',
  caps: ['orch:spawn', 'orch:read'],
  issuedAtMs: clock.now(),
  expiresAtMs: autonomy.api.leaseUntilMs(),
  bearerDigest: null,
  bootId: '',
  ...more,
});
const admin: CallContext = {
  identity: { principalId: 'token:root', tokenId: 'root', scopes: ['*'] },
  traceId: '0'.repeat(32),
  requestId: 'r',
  signal: new AbortController().signal,
  transport: 'process',
};
const turnOf = (leaseId: string | undefined, rootRunId = root): CallingTurn => ({
  turnId: 'tn_1',
  origin: 'rpc',
  sessionKey: 'k',
  rootRunId,
  ...(leaseId !== undefined && { run: { runId: `sr_${leaseId}`, leaseId, depth: 1 } }),
});
const asAgent = (calling: CallingTurn): CallContext => ({
  ...admin,
  agentCaller: { agentId: 'default', principalId: 'token:ada', conversationRef: 'cv_1', turn: calling },
});
const list = async () => (await autonomy.methods['run.list']({ offset: 0, limit: 50 }, admin)).runs;
const capsOf = (calling: CallingTurn) => [...autonomy.api.standing(agent, asAgent(calling).agentCaller).caps];
const tick = async (ms: number) => {
  clock.advance(ms);
  // Writes queued by the tick precede these in the single writer; it makes at most three, one after the other.
  for (let n = 0; n < 4; n += 1) await db.write(readRoot, { id: '' });
};

test('a root is written with its first work, ends with its last, and becomes active again when more begins', async () => {
  await db.write(enter, entry('run'));
  await db.write(enter, entry('graph'));
  expect(await list()).toMatchObject([{ state: 'active', runs: { open: 1, completed: 0, failed: 0 }, graphs: 1 }]);
  await db.write(leave, leaving('run', { failed: true }));
  expect(await list()).toMatchObject([{ state: 'active', runs: { open: 0, completed: 0, failed: 1 }, tokens: 10, cost: 5e-9 }]);
  await db.write(leave, leaving('graph', { costNano: null }));
  expect(await list()).toMatchObject([{ state: 'completed', tokens: 20, cost: null, endedAt: clock.now() }]);
  await db.write(enter, entry('run'));
  const [again] = await list();
  expect(again).toMatchObject({ state: 'active', runs: { open: 1 } });
  expect(again).not.toHaveProperty('endedAt');
  await db.write(leave, leaving('run'));
  await db.write(enter, entry('run', 'root-rpc-2'));
  await db.write(leave, leaving('run', { rootRunId: 'root-rpc-2', failed: true }));
  expect((await list()).map(({ rootRunId, state }) => [rootRunId, state])).toContainEqual(['root-rpc-2', 'failed']);
});

test('nothing enters a root after its kill is committed, and its leases grant nothing', async () => {
  await db.write(enter, entry('run'));
  await db.write(issue, lease('a'));
  await db.write(issue, lease('b', { parentLeaseId: 'a' }));
  await autonomy.turns.begin(turnOf('a'));
  expect(capsOf(turnOf('a'))).toEqual(['orch:spawn', 'orch:read']);
  const stops: string[] = [];
  autonomy.api.onStop((id, how) => {
    stops.push(`${id} ${how}`);
    return 3;
  });
  autonomy.api.onStop(() => Promise.reject(new Error('cannot be stopped')));
  expect(await autonomy.methods['run.kill']({ rootRunId: root }, admin)).toEqual({ killed: 4 });
  expect(stops).toEqual([`${root} kill`]);
  expect(capsOf(turnOf('a'))).toEqual([]);
  await expect(db.write(enter, entry('run'))).rejects.toMatchObject({ code: 'denied' });
  await expect(db.write(issue, lease('c', { parentLeaseId: 'b' }))).rejects.toMatchObject({ code: 'denied' });
  expect(() => autonomy.api.admit('orch:spawn', agent, asAgent(turnOf('a')))).toThrow('Capability denied: orch:spawn');
  // Killed work leaves; the root stays revoked, and nothing remains to kill.
  await db.write(leave, leaving('run', { failed: true }));
  expect(await list()).toMatchObject([{ state: 'revoked', runs: { open: 0, failed: 1 } }]);
  await expect(autonomy.methods['run.kill']({ rootRunId: root }, admin)).rejects.toMatchObject({ code: 'precondition_failed' });
  await restart();
  expect(capsOf(turnOf(undefined))).toEqual([]);
  await autonomy.turns.begin(turnOf('a'));
  expect(capsOf(turnOf('a'))).toEqual([]);
});

test('revoking a lease revokes all below it, and no other', async () => {
  await db.write(enter, entry('run'));
  for (const [id, parentLeaseId] of [
    ['a', null],
    ['b', 'a'],
    ['c', 'b'],
    ['d', null],
  ] as const)
    await db.write(issue, lease(id, { parentLeaseId }));
  for (const id of ['a', 'b', 'c', 'd']) await autonomy.turns.begin(turnOf(id));
  expect(await autonomy.methods['lease.revoke']({ leaseId: 'b' }, admin)).toEqual({ revoked: 2 });
  expect(['a', 'b', 'c', 'd'].map((id) => capsOf(turnOf(id)).length)).toEqual([2, 0, 0, 2]);
  expect(await autonomy.methods['lease.revoke']({ leaseId: 'b' }, admin)).toEqual({ revoked: 0 });
  await db.write(end, { leaseId: 'd', atMs: clock.now() });
  expect(await autonomy.methods['lease.revoke']({ leaseId: 'd', rootRunId: root }, admin)).toEqual({ revoked: 1 });
  expect(await list()).toMatchObject([{ state: 'revoked' }]);
});

test('agents stop nothing, whatever their token may, and see only the runs of their principal', async () => {
  await db.write(enter, entry('run'));
  await db.write(enter, { ...entry('run', 'root-rpc-2'), principalId: 'token:bob' });
  const call = asAgent(turnOf(undefined));
  for (const attempt of [
    autonomy.methods['run.kill']({ rootRunId: root }, call),
    autonomy.methods['lease.revoke']({ rootRunId: root }, call),
    autonomy.methods['autonomy.evict']({ rootRunId: root }, call),
  ])
    await expect(attempt).rejects.toMatchObject({ code: 'denied' });
  const { runs } = await autonomy.methods['run.list']({ offset: 0, limit: 50 }, call);
  expect(runs.map(({ rootRunId }) => rootRunId)).toEqual([root]);
  expect(await list()).toHaveLength(2);
});

test('the lease of a script is valid for its bearer until the script ends, the lease expires or the process exits', async () => {
  await db.write(enter, entry('script'));
  const held = () => autonomy.api.leaseOf('digest');
  expect(await held()).toBeUndefined();
  await db.write(issue, lease('s', { bearerDigest: 'digest', caps: ['orch:read'] }));
  expect(await held()).toMatchObject({ id: 's', rootRunId: root, runId: 'sr_s', caps: ['orch:read'] });
  clock.advance(60 * 60_000);
  expect(await held()).toBeUndefined();
  await db.write(issue, lease('t', { bearerDigest: 'other' }));
  expect(await autonomy.api.leaseOf('other')).toMatchObject({ id: 't' });
  await restart();
  expect(await autonomy.api.leaseOf('other')).toBeUndefined();
  // No work remains in a root whose scripts died with their process.
  expect(await list()).toMatchObject([{ state: 'orphaned' }]);
});

test('a run renews its lease while its turn runs, even when it begins after the lease expired', async () => {
  await db.write(enter, entry('run'));
  await db.write(issue, lease('a'));
  clock.advance(2 * 60 * 60_000);
  await autonomy.turns.begin(turnOf('a'));
  expect(capsOf(turnOf('a'))).toHaveLength(2);
  for (let minutes = 0; minutes < 90; minutes += 1) await tick(60_000);
  expect(capsOf(turnOf('a'))).toHaveLength(2);
  autonomy.turns.end(turnOf('a'));
  expect(capsOf(turnOf('a'))).toEqual([]);
});

test('active roots write heartbeats, and old ended roots are deleted', async () => {
  await db.write(enter, entry('run'));
  await db.write(issue, lease('a'));
  await autonomy.turns.begin(turnOf('a'));
  const begun = clock.now();
  await tick(30_000);
  expect((await list())[0]?.heartbeatAt).toBe(begun + 30_000);
  await restart();
  expect(await list()).toMatchObject([{ state: 'active' }]);
  await db.write(end, { leaseId: 'a', atMs: clock.now() });
  await db.write(leave, leaving('run'));
  await tick(7 * day + 60_000);
  await tick(30_000);
  expect(await list()).toEqual([]);
});

const record = (tokens: number, dollars: number | null): CallRecord => ({
  provider: 'mock',
  modelId: 'm',
  operation: 'subagent',
  usage: { input: tokens, output: 0, cacheRead: 0, cacheWrite: 0, estimated: false },
  cost: dollars === null ? null : { input: dollars * 1e9, output: 0, cacheRead: 0, cacheWrite: 0 },
  savedNano: null,
  latencyMs: 1,
  startedAtMs: 0,
  outcome: 'ok',
});
const need = { models: [], inputTokens: 100, maxOutputTokens: 100 };
/** A turn without its own limits. */
const uncapped = { reserve: () => undefined, spend() {} };

test('everything that one request starts shares one budget, which is reserved during calls and survives a restart', async () => {
  await restart({ guards: { budget: { tokens: 1000, usd: 10, hours: 1 } } });
  await db.write(enter, entry('run'));
  await db.write(issue, lease('a'));
  // What the turn of the root spends before it delegates counts from then on.
  const own = autonomy.turns.capped(uncapped, turnOf(undefined));
  expect(own.reserve(need)).toBeUndefined();
  own.spend(record(300, 1));
  autonomy.api.admit('orch:spawn', agent, asAgent(turnOf(undefined)));
  await autonomy.turns.begin(turnOf('a'));
  const child = autonomy.turns.capped(uncapped, turnOf('a'));
  const first = own.reserve(need);
  const second = child.reserve(need);
  if (first === undefined || 'refused' in first || second === undefined || 'refused' in second) throw new Error('refused');
  // 300 spent and twice 200 reserved: a third concurrent call exceeds the limit.
  const third = child.reserve(need);
  expect(third).toMatchObject({ maxOutputTokens: 100 });
  expect(child.reserve(need)).toMatchObject({ refused: { cap: 'autonomy.guards.budget.tokens', used: 300 } });
  first.settle([record(200, null)]);
  second.settle([record(200, 2)]);
  if (third === undefined || 'refused' in third) throw new Error('refused');
  third.settle([]);
  expect(autonomy.shown(agent, asAgent(turnOf('a'))).budget).toMatchObject({ tokensRemaining: 300, usdRemaining: 7 });
  await tick(30_000);
  expect(await list()).toMatchObject([{ tokens: 700, cost: null }]);
  await restart({ guards: { budget: { tokens: 1000, usd: 10, hours: 1 } } });
  expect(autonomy.api.budget.covers(root)).toBe(true);
  expect(autonomy.shown(agent, asAgent(turnOf('a'))).budget).toMatchObject({ tokensRemaining: 300, usdRemaining: 7 });
  autonomy.api.budget.spend(root, 100, 7e9);
  expect(autonomy.api.budget.covers(root)).toBe(false);
  expect(autonomy.turns.capped(uncapped, turnOf('a')).reserve(need)).toMatchObject({ refused: { cap: 'autonomy.guards.budget.usd', limit: 10 } });
  expect(() => autonomy.api.admit('orch:spawn', agent, asAgent(turnOf('a')))).toThrow('Capability denied');
  await restart({ guards: { budget: { hours: 1 } } });
  // Time does not count while no turn runs.
  clock.advance(24 * 3_600_000);
  expect(autonomy.api.budget.covers(root)).toBe(true);
  await autonomy.turns.begin(turnOf('a'));
  clock.advance(1_800_000);
  // Two concurrent turns count once, and a restart keeps the count.
  await autonomy.turns.begin(turnOf('b'));
  clock.advance(1_700_000);
  autonomy.turns.end(turnOf('a'));
  autonomy.turns.end(turnOf('b'));
  await restart({ guards: { budget: { hours: 1 } } });
  await autonomy.turns.begin(turnOf('a'));
  expect(autonomy.api.budget.covers(root)).toBe(true);
  clock.advance(100_000);
  expect(autonomy.turns.capped(uncapped, turnOf('a')).reserve(need)).toMatchObject({ refused: { cap: 'autonomy.guards.budget.hours' } });
});

test('a turn of a root that ended long ago continues with its earlier spending', async () => {
  await db.write(enter, entry('run'));
  await db.write(leave, leaving('run', { tokens: 1000, costNano: 1e9 }));
  await autonomy.turns.begin(turnOf(undefined));
  autonomy.api.admit('orch:spawn', agent, asAgent(turnOf(undefined)));
  expect(autonomy.shown(agent, asAgent(turnOf(undefined))).budget).toMatchObject({ tokensRemaining: 200_000_000 - 1000, usdRemaining: 199 });
  expect(autonomy.turns.begin(turnOf(undefined, 'root-turn-tn_1'))).toBeUndefined();
});

test('a turn that is its own root and resumes in another process continues with what its root has spent', async () => {
  const own = turnOf(undefined, 'root-turn-tn_1');
  expect(autonomy.turns.begin(own)).toBeUndefined();
  await db.write(enter, entry('run', own.rootRunId));
  autonomy.api.admit('orch:spawn', agent, asAgent(own));
  autonomy.api.budget.spend(own.rootRunId, 1000, 1e9);
  await db.write(leave, leaving('run', { rootRunId: own.rootRunId }));
  autonomy.turns.end(own);
  await restart();
  await autonomy.turns.begin(own, true);
  autonomy.api.admit('orch:spawn', agent, asAgent(own));
  expect(autonomy.shown(agent, asAgent(own)).budget).toMatchObject({ tokensRemaining: 200_000_000 - 1000, usdRemaining: 199 });
});

test('a turn of a stopped run makes no more model calls', async () => {
  await db.write(enter, entry('run'));
  await db.write(issue, lease('a'));
  await autonomy.turns.begin(turnOf('a'));
  const budget = autonomy.turns.capped(uncapped, turnOf('a'));
  expect(budget.reserve(need)).not.toHaveProperty('refused');
  await autonomy.methods['lease.revoke']({ leaseId: 'a' }, admin);
  expect(budget.reserve(need)).toMatchObject({ refused: { isRevoked: true } });
});

test('spawns are limited per minute and root; callers that are not agents are not counted', async () => {
  await restart({ guards: { spawn: { perMinute: 2 }, message: { perHour: 1 } } });
  const spawn = (rootRunId: string) => autonomy.api.admit('orch:spawn', agent, asAgent(turnOf(undefined, rootRunId)));
  spawn(root);
  autonomy.api.admit('orch:graph', agent, asAgent(turnOf(undefined)));
  expect(() => spawn(root)).toThrow(expect.objectContaining({ code: 'rate_limited', details: expect.objectContaining({ retryAfterMs: 60_000 }) }));
  spawn('root-rpc-2');
  for (let n = 0; n < 5; n += 1) autonomy.api.admit('orch:spawn', agent, admin);
  clock.advance(60_000);
  spawn(root);
  const message = () => autonomy.api.admit('orch:message', agent, asAgent(turnOf(undefined)));
  message();
  expect(message).toThrow('Too many calls of');
  expect(autonomy.api.rootOf(admin)).toMatch(/^root-rpc-[0-9a-f-]{36}$/);
  expect(autonomy.api.rootOf(asAgent(turnOf(undefined)))).toBe(root);
});

test('a root whose turn has delegated nothing yet can be evicted and killed', async () => {
  turn = { agentId: 'default', principalId: 'token:ada', conversationRef: 'cv_1', origin: 'api' };
  await autonomy.methods['autonomy.evict']({ rootRunId: root }, admin);
  expect(await list()).toMatchObject([{ evicted: true, state: 'completed', conversationRef: 'cv_1' }]);
  expect(await autonomy.methods['run.kill']({ rootRunId: root }, admin)).toEqual({ killed: 1 });
  await expect(db.write(enter, entry('run'))).rejects.toMatchObject({ code: 'denied' });
});
