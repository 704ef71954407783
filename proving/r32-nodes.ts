import * as z from 'zod';
import { pause } from './lib/daemon.ts';
import { bearer, http } from './lib/http.ts';
import type { Node, Nodes } from './lib/nodes.ts';
import { nonceOf } from './lib/provider.ts';
import { RpcFailure, rpcCall } from './lib/rpc.ts';
import { type Cell, type CellStop, cellStops, type NumberedCell, StopCell } from './lib/stop-cell.ts';
import type { StopModel } from './lib/stop-model.ts';
import type { WorkName } from './lib/stop-work.ts';
import { deliveryMs, type TakeoverPart } from './lib/takeover.ts';

/**
 * R32 over a take-over: a stop that the active daemon acknowledged just before it died is in force on the one that takes over. Nothing
 * that it stopped is started or resumed there, while work that nobody stopped is resumed.
 */
const looping = ['looping sub-agent', 'looping graph', 'looping job', 'looping session.send', 'looping webhook'] as const;
const waiting = ['waiting sub-agent', 'waiting graph', 'waiting job', 'waiting session.send', 'waiting webhook'] as const;
/** Commands of these are not repeated after a crash, and none may be left. */
const commands = ['subagent', 'command of a sub-agent', 'graph', 'job', 'session.send', 'command', 'call'] as const;
/** Work that nobody stops: without it, nothing would show that the stops have an effect. */
export const nodeControls: readonly WorkName[] = looping;
const owned = (names: readonly WorkName[]) => names.filter((name) => !name.endsWith('webhook'));

/** Which stops cover which work that outlives a daemon, or must not. */
const meant: Readonly<Record<Exclude<CellStop, 'several at once'>, readonly WorkName[]>> = {
  'run.kill': [...looping, ...waiting, ...commands],
  'subagent.kill': ['looping sub-agent', 'waiting sub-agent', 'subagent', 'command of a sub-agent'],
  'background.stop': ['command', 'call'],
  'lease.revoke': ['command', 'call', 'command of a sub-agent'],
  'tokens.revoke': owned([...looping, ...waiting, ...commands]),
  'agents.suspend': [...looping, ...waiting, ...commands],
  'agents.delete': owned([...looping, ...waiting, ...commands]),
  'session.delete': ['looping session.send', 'looping webhook', 'waiting session.send', 'waiting webhook', 'session.send', 'command', 'call'],
};

export const allNodeCells: readonly Cell[] = Object.entries(meant).flatMap(([stop, names]) =>
  names.map((work) => ({ stop: stop as CellStop, work })),
);

/** Each stop with one kind of work. */
export const fewNodeCells: readonly Cell[] = [
  { stop: 'run.kill', work: 'looping graph' },
  { stop: 'subagent.kill', work: 'looping sub-agent' },
  { stop: 'background.stop', work: 'command' },
  { stop: 'lease.revoke', work: 'command of a sub-agent' },
  { stop: 'tokens.revoke', work: 'looping job' },
  { stop: 'agents.suspend', work: 'looping webhook' },
  { stop: 'agents.delete', work: 'looping sub-agent' },
  { stop: 'session.delete', work: 'looping session.send' },
  { stop: 'run.kill', work: 'waiting sub-agent' },
];

const settleMs = 2_000;
const resumeMs = 30_000;
const atOnce = 8;
const Agents = z.looseObject({ agents: z.array(z.string()) });

export interface StopsPart extends TakeoverPart {
  /** The longest time from the take-over to the effect, in milliseconds. */
  readonly slowestMs: Partial<Record<CellStop, number>>;
  /** Stops that were acknowledged, and work that nobody stopped. */
  readonly counts: { stops: number; resumed: number };
}

/** Stops of `cells` that the active daemon acknowledges before it dies; the work of `controls` must be resumed. */
export function stopsPart(options: {
  readonly nodes: Nodes;
  readonly model: StopModel;
  readonly seed: number;
  readonly cells: readonly NumberedCell[];
  readonly controls: readonly NumberedCell[];
  /** How long an effect is waited for, instead of its limit. */
  readonly withinMs: number | undefined;
}): StopsPart {
  const { nodes, model, seed, withinMs } = options;
  let cells: readonly StopCell[] = [];
  let controls: readonly StopCell[] = [];
  const acknowledged = new Set<StopCell>();
  const slowestMs: Partial<Record<CellStop, number>> = {};
  const counts = { stops: 0, resumed: 0 };
  let stops: (readonly [StopCell, () => Promise<unknown>])[] = [];

  return {
    slowestMs,
    counts,
    async prepare(active) {
      // Processes are recognized by this number, also where another proof runs on the same machine.
      const numberOf = ({ index }: NumberedCell) => (100 + (seed % 800)) * 1_000 + index;
      const playedBy = (one: NumberedCell) => new StopCell(active, model, { ...one, nonce: nonceOf([seed, numberOf(one)]) });
      cells = options.cells.map(playedBy);
      controls = options.controls.map(playedBy);
      await eachOf([...cells, ...controls], (one) => one.begin().catch((error: unknown) => fail(one, error)));
      stops = await Promise.all(cells.map(async (one) => [one, await one.aim()] as const));
    },
    async strike() {
      await Promise.all(
        stops.map(([one, stop]) =>
          stop().then(
            () => acknowledged.add(one),
            () => undefined,
          ),
        ),
      );
    },
    async check(next, diedAt) {
      const readyAt = performance.now();
      counts.stops = acknowledged.size;
      counts.resumed = 0;
      const wrong: string[] = [];
      const late = (one: StopCell) => model.lastAsked(one.nonce) > diedAt + deliveryMs;
      await eachOf([...acknowledged], async (one) => {
        const { stop } = one.cell;
        one.moveTo(next);
        const limitMs = withinMs ?? cellStops[stop];
        let what = await one.missing();
        for (; what !== undefined && performance.now() - readyAt < limitMs; what = await one.missing()) await pause(20);
        slowestMs[stop] = Math.max(slowestMs[stop] ?? 0, Math.round(performance.now() - readyAt));
        if (what !== undefined) wrong.push(`${nameOf(one)}: ${what} after ${limitMs} ms`);
        await one.retry();
      });
      await Promise.all(
        controls.map(async (one) => {
          one.moveTo(next);
          for (const deadline = performance.now() + resumeMs; !late(one) && performance.now() < deadline;) await pause(30);
          if (late(one)) counts.resumed += 1;
          else wrong.push(`${one.cell.work}, which nobody stopped, was not resumed`);
        }),
      );
      await pause(settleMs);
      for (const one of acknowledged) {
        if (late(one)) wrong.push(`${nameOf(one)}: its model was asked after the take-over`);
        const what = (await one.missing()) ?? (await leftOf(one, next)) ?? (await turnsOf(nodes, one));
        if (what !== undefined) wrong.push(`${nameOf(one)}: ${what}`);
      }
      return wrong;
    },
    async end(next) {
      for (const one of [...cells, ...controls]) {
        one.moveTo(next);
        await one.cleanUp();
      }
    },
  };
}

const nameOf = ({ cell }: StopCell) => `${cell.stop} × ${cell.work}`;

function fail(one: StopCell, error: unknown): never {
  throw new Error(`${nameOf(one)}: ${String(error)}`);
}

/** Some at once: a daemon refuses what it cannot do in time. */
async function eachOf(all: readonly StopCell[], go: (one: StopCell) => Promise<void>): Promise<void> {
  const left = all.values();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const one of left) await go(one);
    }),
  );
}

/** What a stop left other than its work: a token that opens, an agent or a conversation that answers, a run that is active. */
async function leftOf(one: StopCell, next: Node): Promise<string | undefined> {
  const { agentId, conversationRef } = one;
  const refused = (method: string, params: object) =>
    rpcCall(next, method, params).then(
      () => false,
      (error: unknown) => error instanceof RpcFailure,
    );
  switch (one.cell.stop) {
    case 'run.kill':
    case 'lease.revoke': {
      const root = (await one.runs()).find(({ rootRunId }) => rootRunId === one.rootRunId);
      if (root?.state !== 'revoked') return `its root run is ${root?.state ?? 'unknown'}`;
      break;
    }
    case 'tokens.revoke':
      if (await opens(one)) return 'the token opens something';
      break;
    case 'agents.suspend':
      if (!(await refused('agent.execute', { agentId, sessionKey: `${agentId}:other`, message: 'Hello' }))) return 'the agent answers';
      // Its work waits for the resume.
      return undefined;
    case 'agents.delete':
      if (Agents.parse(await rpcCall(next, 'agents.list', {})).agents.includes(agentId)) return 'the agent is there';
      break;
    case 'session.delete':
      if (!(await refused('session.history', { conversationRef }))) return 'the conversation is there';
      break;
    default:
  }
  const active = await one.runs({ state: 'active' });
  return active.length > 0 ? `${active.length} of its runs are active` : undefined;
}

/**
 * Turns that started or continued on the daemon that took over, announcements of what was stopped included; one that was under way may
 * be resumed only to be aborted.
 */
async function turnsOf(nodes: Nodes, { agentId, cell }: StopCell): Promise<string | undefined> {
  // The conversation learns of the end of a call that its owner stopped.
  if (cell.stop === 'background.stop') return undefined;
  const rows = await nodes.query<{ state: string; origin: string }>(
    `SELECT turn.state, origin FROM turn, active_node WHERE turn.boot_id = active_node.boot_id AND agent_id = '${agentId}' AND turn.state <> 'aborted'`,
  );
  return rows.length > 0 ? `it has turns there: ${rows.map(({ state, origin }) => `${origin} ${state}`).join(', ')}` : undefined;
}

/** Sends from a separate address: failed logins are counted by it. */
async function opens({ holder, index }: StopCell): Promise<boolean> {
  const body = { jsonrpc: '2.0', id: 1, method: 'session.list', params: {} };
  const { status } = await http({ port: holder.port, path: '/rpc', headers: bearer(holder.token), body, localAddress: `127.0.1.${index + 1}` });
  return status !== 401;
}
