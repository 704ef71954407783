import { readdir, readFile } from 'node:fs/promises';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { nonceOf, proofConfig } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';
import { secondsOf, startStopModel, type StopModel } from './lib/stop-model.ts';
import { type Begun, type Scene, type Work, type WorkName, works } from './lib/stop-work.ts';
import { readBooks } from './lib/delegation-books.ts';

/**
 * R32 over every route: each stop against each kind of work that it covers. After it no model is called, no process is left, nothing
 * is in the background, and every waiting caller gets an answer.
 */
export const cellStops = {
  'run.kill': 2000,
  'subagent.kill': 2000,
  'background.stop': 2000,
  'lease.revoke': 5000,
  'tokens.revoke': 5000,
  'agents.suspend': 5000,
  'agents.delete': 5000,
  'session.delete': 5000,
  'several at once': 5000,
} as const;
export type CellStop = keyof typeof cellStops;

export interface CellsReport {
  readonly cells: number;
  /** The longest time to effect, in milliseconds. */
  readonly slowestMs: Readonly<Partial<Record<CellStop, number>>>;
  readonly wrong: readonly string[];
}

const conversations = [
  '/rpc',
  '/ws',
  '/mcp',
  '/api/chat',
  '/api/chat keyed',
  '/api/chat/stream',
  'script',
  'approval',
  'foreground command',
  'waits for its lane',
] as const;
const completions = ['/v1/chat/completions', '/v1/chat/completions stream', '/v1/responses', '/v1/responses stream'] as const;
const left = ['command', 'call'] as const;
const delegated = ['subagent', 'command of a sub-agent', 'graph'] as const;
const durable = ['job', 'session.send'] as const;
const waiting = ['waiting sub-agent', 'waiting graph', 'waiting job', 'waiting session.send'] as const;

/** Which stops cover which work. */
const meant: Readonly<Record<CellStop, readonly WorkName[]>> = {
  'run.kill': [
    ...conversations.filter((name) => name !== 'waits for its lane'),
    ...completions,
    ...left,
    ...delegated,
    ...durable,
    'webhook',
    ...waiting,
    'waiting webhook',
  ],
  'subagent.kill': ['subagent', 'command of a sub-agent', 'waiting sub-agent'],
  'background.stop': left,
  // A call that is past its check completes, so that only work without a call in flight has to end.
  'lease.revoke': [...left, 'command of a sub-agent'],
  'tokens.revoke': [...conversations, ...completions, ...left, ...delegated, ...durable, ...waiting],
  'agents.suspend': [...conversations, ...completions, ...left, ...delegated, ...durable, 'webhook', ...waiting, 'waiting webhook'],
  'agents.delete': [...conversations, ...completions, ...left, ...delegated, ...durable, ...waiting],
  'session.delete': [...conversations, ...left, 'session.send', 'waiting session.send', 'waiting webhook'],
  'several at once': ['/rpc', '/v1/chat/completions stream', ...left, 'subagent', 'graph'],
};

export const allCells = Object.entries(meant).flatMap(([stop, names]) => names.map((work) => ({ stop: stop as CellStop, work })));

export interface Cell {
  readonly stop: CellStop;
  readonly work: WorkName;
}

const beginMs = 20_000;
const hooked = 'hooked';
const Token = z.looseObject({ id: z.string(), secret: z.string() });
const Items = z.looseObject({ items: z.array(z.looseObject({ id: z.string(), rootRunId: z.string(), agentId: z.string() })) });
const Roots = z.looseObject({
  runs: z.array(
    z.looseObject({
      rootRunId: z.string(),
      agentId: z.string(),
      conversationRef: z.string().nullable(),
      waiting: z.looseObject({ kind: z.string() }).optional(),
    }),
  ),
});
const agentConfig = (more: object = {}) => ({ model: 'local/test-model', maxConcurrentRuns: 100, tools: { profile: 'full' }, ...more });

export async function proveStopCells(options: {
  readonly seed: number;
  readonly cells?: readonly Cell[];
  readonly broken?: string | readonly string[];
  /** How long an effect is waited for; a little longer than the limit when absent. */
  readonly withinMs?: number;
  readonly progress?: (line: string) => void;
}): Promise<CellsReport> {
  const { cells = allCells, seed, broken, withinMs, progress } = options;
  const [home, port, model] = [await makeHome(), await freePort(), await startStopModel()];
  await writeConfig(home, configOf(model));
  const slowestMs: Partial<Record<CellStop, number>> = {};
  const wrong: string[] = [];
  let daemon: Daemon | undefined;
  try {
    daemon = await startDaemon({ home, port, ...(broken !== undefined && { broken }) });
    for (const [index, cell] of cells.entries()) {
      const played = await new Play(daemon, model, cell, { nonce: nonceOf([seed, index]), withinMs })
        .run(index)
        .catch((error: unknown) => ({ tookMs: 0, wrong: [String(error)] }));
      slowestMs[cell.stop] = Math.max(slowestMs[cell.stop] ?? 0, Math.round(played.tookMs));
      wrong.push(...played.wrong.map((line) => `${cell.stop} × ${cell.work}: ${line}`));
      if (index % 20 === 19) progress?.(`R32 after ${index + 1} of ${cells.length} cells: ${wrong.length} wrong`);
    }
    return { cells: cells.length, slowestMs, wrong };
  } finally {
    await daemon?.kill();
    await model.close();
    await removeHome(home);
  }
}

const configOf = (model: StopModel) => ({
  ...proofConfig(model.url, { agents: { default: agentConfig(), [hooked]: agentConfig({ originTools: { webhook: ['exec'] } }) } }),
  webhooks: { mappings: [{ id: 'work', match: { path: 'work' }, agentId: hooked, messageTemplate: '{{text}}', allowUnauthenticated: true }] },
  security: { agentToAgent: { subAgentToolGroups: ['coding', 'sessions'], subAgentMaxSteps: 1000 } },
  autonomy: { guards: { spawn: { perMinute: 10_000 } } },
  approvals: {
    rules: [
      { tools: ['write'], action: 'ask' },
      { tools: ['exec', 'orchestrate'], action: 'auto', tainted: true },
    ],
  },
});

class Play {
  readonly #daemon: Daemon;
  readonly #model: StopModel;
  readonly #cell: Cell;
  readonly #nonce: string;
  readonly #work: Work;
  readonly #withinMs: number;

  constructor(daemon: Daemon, model: StopModel, cell: Cell, { nonce, withinMs }: { readonly nonce: string; readonly withinMs: number | undefined }) {
    this.#withinMs = withinMs ?? cellStops[cell.stop] + 3000;
    this.#daemon = daemon;
    this.#model = model;
    this.#cell = cell;
    this.#nonce = nonce;
    this.#work = works[cell.work];
  }

  async run(index: number): Promise<{ readonly tookMs: number; readonly wrong: readonly string[] }> {
    const daemon = this.#daemon;
    const agentId = this.#cell.work.endsWith('webhook') ? hooked : `cell-${index}`;
    if (agentId !== hooked) {
      const config = agentConfig(this.#work.promotes === true ? { background: { afterMs: 300 } } : {});
      await rpcCall(daemon, 'agents.create', { agentId, config });
    }
    const token = Token.parse(await rpcCall(daemon, 'tokens.create', { scopes: ['*'] }));
    const scene: Scene = { daemon, agentId, nonce: this.#nonce, holder: { port: daemon.port, token: token.secret } };
    const begun = await this.#work.begin(scene);
    await this.#atWork(agentId);
    const fromMs = performance.now();
    await this.#stop(scene, begun, token.id);
    const wrong: string[] = [];
    const tookMs = await this.#effect(scene, begun, fromMs, wrong);
    const effectMs = performance.now();
    await this.#timeForMore();
    if (this.#model.lastAsked(this.#nonce) > effectMs + 50) wrong.push('a model was asked after the effect');
    if (this.#cell.stop === 'tokens.revoke' && this.#work.refusal !== undefined && begun.answered !== undefined) {
      const answer = await Promise.race([begun.answered, pause(100).then(() => 'no answer')]);
      if (!this.#work.refusal.test(answer)) wrong.push(`the caller read ${answer.slice(0, 200)}`);
    }
    await this.#cleanUp(agentId);
    return { tookMs, wrong };
  }

  async #atWork(agentId: string): Promise<void> {
    for (const deadline = performance.now() + beginMs; performance.now() < deadline; await pause(30)) {
      if (this.#model.lastAsked(this.#nonce) === 0 || (await this.#processes()) < this.#work.processes) continue;
      if (this.#work.waits === true && (await this.#runsOf(agentId)).every((run) => run.waiting?.kind !== 'provider')) continue;
      if (this.#cell.work === 'call' && (await this.#inBackground(agentId)).length === 0) continue;
      // Into the tool loop, the approval or the queue.
      if (this.#work.processes === 0) await pause(200);
      return;
    }
    throw new Error('the work did not begin');
  }

  /** Waiting work is tried at once, if anything is left of it. */
  async #timeForMore(): Promise<void> {
    if (this.#work.waits !== true) return pause(250);
    await rpcCall(this.#daemon, 'providers.retry', { provider: 'local' });
    await pause(1500);
  }

  async #runsOf(agentId: string, state: { readonly state?: 'active' } = {}) {
    const { runs } = Roots.parse(await rpcCall(this.#daemon, 'run.list', { ...state, limit: 200 }));
    return runs.filter((run) => run.agentId === agentId);
  }

  async #stop({ daemon, agentId }: Scene, begun: Begun, tokenId: string): Promise<void> {
    const rootRunId = async () => begun.rootRunId ?? (await this.#rootOf(agentId));
    const stops: Readonly<Record<Exclude<CellStop, 'several at once'>, () => Promise<unknown>>> = {
      'run.kill': async () => rpcCall(daemon, 'run.kill', { rootRunId: await rootRunId() }),
      'subagent.kill': () => rpcCall(daemon, 'subagent.kill', { target: begun.runId }),
      'background.stop': async () => {
        for (const { id } of await this.#inBackground(agentId)) await rpcCall(daemon, 'background.stop', { id });
      },
      'lease.revoke': async () => rpcCall(daemon, 'lease.revoke', { rootRunId: await rootRunId() }),
      'tokens.revoke': () => rpcCall(daemon, 'tokens.revoke', { id: tokenId }),
      'agents.suspend': () => rpcCall(daemon, 'agents.suspend', { agentId }),
      'agents.delete': () => rpcCall(daemon, 'agents.delete', { agentId }),
      'session.delete': async () => {
        const conversationRef = begun.conversationRef ?? (await this.#runsOf(agentId))[0]?.conversationRef;
        await rpcCall(daemon, 'session.delete', { conversationRef });
      },
    };
    const { stop } = this.#cell;
    if (stop !== 'several at once') return void (await stops[stop]());
    // The second one may find nothing left to stop.
    await Promise.allSettled([stops['run.kill'](), stops['tokens.revoke'](), stops['agents.suspend']()]);
  }

  async #rootOf(agentId: string): Promise<string> {
    const [run] = await this.#runsOf(agentId, { state: 'active' });
    const [item] = await this.#inBackground(agentId);
    const found = run?.rootRunId ?? item?.rootRunId;
    if (found === undefined) throw new Error('the work has no root that could be killed');
    return found;
  }

  async #inBackground(agentId: string) {
    return Items.parse(await rpcCall(this.#daemon, 'background.list', { agentId })).items;
  }

  async #effect({ agentId }: Scene, begun: Begun, fromMs: number, wrong: string[]): Promise<number> {
    const limit = cellStops[this.#cell.stop];
    let isAnswered = begun.answered === undefined;
    void begun.answered?.then(() => (isAnswered = true));
    const missing = async (): Promise<string | undefined> => {
      if (!isAnswered) return 'its caller waits';
      const count = await this.#processes();
      if (count > 0) return `${count} processes are left`;
      // A suspended agent's work waits for its resume.
      const isOver = this.#work.waits !== true || this.#cell.stop === 'agents.suspend';
      if (!isOver && (await this.#runsOf(agentId)).some(({ waiting }) => waiting !== undefined)) return 'it waits';
      const items = await this.#inBackground(agentId);
      return items.length > 0 ? `${items.length} are in the background` : undefined;
    };
    let what = await missing();
    while (what !== undefined && performance.now() - fromMs < this.#withinMs) {
      await pause(20);
      what = await missing();
    }
    const tookMs = performance.now() - fromMs;
    if (what !== undefined) wrong.push(`${what} after ${Math.round(tookMs)} ms`);
    else if (tookMs > limit) wrong.push(`the effect came after ${Math.round(tookMs)} ms`);
    return tookMs;
  }

  /** Stops the rest, so that the next cell is alone. */
  async #cleanUp(agentId: string): Promise<void> {
    const daemon = this.#daemon;
    if (agentId === hooked) {
      for (const { rootRunId } of await this.#runsOf(agentId, { state: 'active' }))
        await rpcCall(daemon, 'run.kill', { rootRunId }).catch(() => undefined);
      await rpcCall(daemon, 'agents.suspend', { agentId }).catch(() => undefined);
      await rpcCall(daemon, 'agents.resume', { agentId }).catch(() => undefined);
    } else await rpcCall(daemon, 'agents.delete', { agentId }).catch(() => undefined);
  }

  #processes(): Promise<number> {
    return sleeping(this.#nonce);
  }
}

/** Processes of this machine, jailed ones too, that sleep as long as those of this round. */
async function sleeping(nonce: string): Promise<number> {
  const seconds = secondsOf(nonce);
  let found = 0;
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.startsWith(`sleep\0${seconds}\0`)) found += 1;
  }
  return found;
}

/** Revokes a token and kills the daemon immediately, and stops a daemon with background commands: nothing of either is left. */
export async function proveStopsOverRestart(options: { readonly seed: number }): Promise<{ readonly wrong: readonly string[] }> {
  const [home, port, model] = [await makeHome(), await freePort(), await startStopModel()];
  await writeConfig(home, configOf(model));
  const wrong: string[] = [];
  let daemon: Daemon | undefined;
  try {
    daemon = await startDaemon({ home, port });
    const token = Token.parse(await rpcCall(daemon, 'tokens.create', { scopes: ['*'] }));
    const scene = (index: number, from: Daemon): Scene => ({
      daemon: from,
      agentId: 'default',
      nonce: nonceOf([options.seed, index]),
      holder: { port, token: token.secret },
    });
    const first = scene(9001, daemon);
    const { rootRunId = '' } = await works['command of a sub-agent'].begin(first);
    for (const deadline = performance.now() + beginMs; (await sleeping(first.nonce)) < 2 && performance.now() < deadline;) await pause(30);
    await rpcCall(daemon, 'tokens.revoke', { id: token.id });
    await daemon.kill();
    const askedMs = performance.now();
    daemon = await startDaemon({ home, port });
    await pause(3000);
    if (readBooks(home).runs.some((run) => run.root_run_id === rootRunId && (run.state === 'queued' || run.state === 'running')))
      wrong.push('restart: runs of the revoked token continue');
    if (model.lastAsked(first.nonce) > askedMs) wrong.push('restart: a model was called for the revoked token');
    if ((await sleeping(first.nonce)) > 0) wrong.push('restart: processes are left');

    const second = { ...scene(9002, daemon), holder: { port, token: daemon.token } };
    await works.command.begin(second);
    for (const deadline = performance.now() + beginMs; (await sleeping(second.nonce)) < 2 && performance.now() < deadline;) await pause(30);
    const { code } = await daemon.stop(10_000);
    if (code !== 0) wrong.push(`stop: the daemon ended with ${code}`);
    if ((await sleeping(second.nonce)) > 0) wrong.push('stop: commands in the background are left');
    return { wrong };
  } finally {
    await daemon?.kill();
    await model.close();
    await removeHome(home);
  }
}
