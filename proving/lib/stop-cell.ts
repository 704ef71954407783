import { readdir, readFile } from 'node:fs/promises';
import * as z from 'zod';
import { pause } from './daemon.ts';
import { proofConfig } from './provider.ts';
import { rpcCall, type RpcTarget } from './rpc.ts';
import { secondsOf, type StopModel } from './stop-model.ts';
import { type Begun, type Scene, type Work, type WorkName, works } from './stop-work.ts';

/** The stops, and the milliseconds within which each must take effect. */
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

/** A stop, and the work that it is tried on. */
export interface Cell {
  readonly stop: CellStop;
  readonly work: WorkName;
}

/** The number distinguishes it, with its agent, from the other cells of a daemon. */
export interface NumberedCell {
  readonly cell: Cell;
  readonly index: number;
}

const beginMs = 20_000;
const Token = z.looseObject({ id: z.string(), secret: z.string() });
const Items = z.looseObject({ items: z.array(z.looseObject({ id: z.string(), rootRunId: z.string(), agentId: z.string() })) });
const Roots = z.looseObject({
  runs: z.array(
    z.looseObject({
      rootRunId: z.string(),
      state: z.string(),
      agentId: z.string(),
      conversationRef: z.string().nullable(),
      waiting: z.looseObject({ kind: z.string() }).optional(),
    }),
  ),
});

export const cellAgent = (index: number): string => `cell-${index}`;
const providerOf = (index: number): string => `provider-${index}`;
const isHook = (work: WorkName) => work.endsWith('webhook');
const isWaiting = (work: WorkName) => work.startsWith('waiting');

/** Waiting work has its own provider, so that the failures of that one do not concern the other cells. */
const agentConfig = (index: number, work: WorkName, more: object = {}) => ({
  model: `${isWaiting(work) ? providerOf(index) : 'local'}/test-model`,
  maxConcurrentRuns: 100,
  tools: { profile: 'full' },
  ...more,
});

/** Configuration of a daemon on which all these cells can be played, the agents of webhooks included. */
export function stopConfig(url: string, cells: readonly Pick<Cell, 'work'>[]) {
  const numbered = cells.map(({ work }, index) => ({ work, index, agentId: cellAgent(index) }));
  const hooks = numbered.filter(({ work }) => isHook(work));
  const model = { id: 'test-model', contextWindow: 128_000, maxTokens: 8192, cost: { input: 1, output: 2 } };
  return {
    ...proofConfig(url, {
      agents: {
        default: { model: 'local/test-model', maxConcurrentRuns: 100, tools: { profile: 'full' } },
        ...Object.fromEntries(hooks.map(({ work, index, agentId }) => [agentId, agentConfig(index, work, { originTools: { webhook: ['exec'] } })])),
      },
      providers: (baseUrl) =>
        Object.fromEntries(
          numbered
            .filter(({ work }) => isWaiting(work))
            .map(({ index }) => [providerOf(index), { type: 'openai-compatible', baseUrl, apiKey: 'sk-of-the-fake-provider', models: [model] }]),
        ),
    }),
    webhooks: {
      mappings: hooks.map(({ agentId }) => ({
        id: agentId,
        match: { path: agentId },
        agentId,
        messageTemplate: '{{text}}',
        allowUnauthenticated: true,
      })),
    },
    security: { agentToAgent: { subAgentToolGroups: ['coding', 'sessions'], subAgentMaxSteps: 1000 } },
    autonomy: { guards: { spawn: { perMinute: 10_000 } } },
    approvals: {
      rules: [
        { tools: ['write'], action: 'ask' },
        { tools: ['exec', 'orchestrate'], action: 'auto', tainted: true },
      ],
    },
  };
}

/** One kind of work of a separate agent and token, and a stop for it. */
export class StopCell {
  readonly cell: Cell;
  readonly index: number;
  readonly agentId: string;
  readonly nonce: string;
  readonly work: Work;
  readonly #model: StopModel;
  #target: RpcTarget;
  #token: z.output<typeof Token> | undefined;
  #begun: Begun = {};

  constructor(target: RpcTarget, model: StopModel, options: NumberedCell & { readonly nonce: string }) {
    this.cell = options.cell;
    this.index = options.index;
    this.nonce = options.nonce;
    this.agentId = cellAgent(options.index);
    this.work = works[options.cell.work];
    this.#model = model;
    this.#target = target;
  }

  /** What its caller reads, when one waits. */
  get answered(): Promise<string> | undefined {
    return this.#begun.answered;
  }

  get conversationRef(): string | undefined {
    return this.#begun.conversationRef;
  }

  /** The root that the stop named. */
  get rootRunId(): string | undefined {
    return this.#begun.rootRunId;
  }

  /** The token that started the work, on the daemon that is asked now. */
  get holder(): RpcTarget {
    return { port: this.#target.port, token: this.#token?.secret ?? '' };
  }

  /** Asks another daemon from now on. */
  moveTo(target: RpcTarget): void {
    this.#target = target;
  }

  /** Starts the work, and waits until it is under way. */
  async begin(): Promise<void> {
    const { agentId } = this;
    if (!isHook(this.cell.work)) {
      const config = agentConfig(this.index, this.cell.work, this.work.promotes === true ? { background: { afterMs: 300 } } : {});
      await rpcCall(this.#target, 'agents.create', { agentId, config });
    }
    this.#token = Token.parse(await rpcCall(this.#target, 'tokens.create', { scopes: ['*'] }));
    const scene: Scene = { daemon: this.#target, agentId, nonce: this.nonce, holder: this.holder };
    this.#begun = await this.work.begin(scene);
    await this.#atWork();
  }

  /** Returns the stop with everything that it names, so that it is one call. */
  async aim(): Promise<() => Promise<unknown>> {
    const target = this.#target;
    const { agentId } = this;
    const rootRunId = async () => {
      this.#begun = { ...this.#begun, rootRunId: this.#begun.rootRunId ?? (await this.#rootOf()) };
      return this.#begun.rootRunId;
    };
    const call = (method: string, params: object) => () => rpcCall(target, method, params);
    const stops: Readonly<Record<Exclude<CellStop, 'several at once'>, () => Promise<() => Promise<unknown>>>> = {
      'run.kill': async () => call('run.kill', { rootRunId: await rootRunId() }),
      'subagent.kill': async () => call('subagent.kill', { target: this.#begun.runId }),
      'background.stop': async () => {
        const items = await this.inBackground();
        return () => Promise.all(items.map(({ id }) => rpcCall(target, 'background.stop', { id })));
      },
      'lease.revoke': async () => call('lease.revoke', { rootRunId: await rootRunId() }),
      'tokens.revoke': async () => call('tokens.revoke', { id: this.#token?.id }),
      'agents.suspend': async () => call('agents.suspend', { agentId }),
      'agents.delete': async () => call('agents.delete', { agentId }),
      'session.delete': async () => {
        this.#begun = { ...this.#begun, conversationRef: this.#begun.conversationRef ?? (await this.runs())[0]?.conversationRef ?? '' };
        return call('session.delete', { conversationRef: this.#begun.conversationRef });
      },
    };
    const { stop } = this.cell;
    if (stop !== 'several at once') return stops[stop]();
    const several = await Promise.all([stops['run.kill'](), stops['tokens.revoke'](), stops['agents.suspend']()]);
    // The second one may find nothing left to stop.
    return () => Promise.allSettled(several.map((one) => one()));
  }

  /** What is left of the work; undefined when the stop has taken effect. */
  async missing(): Promise<string | undefined> {
    const count = await sleeping(this.nonce);
    if (count > 0) return `${count} processes are left`;
    // A suspended agent's work waits for its resume.
    const isOver = this.work.waits !== true || this.cell.stop === 'agents.suspend';
    if (!isOver && (await this.runs()).some(({ waiting }) => waiting !== undefined)) return 'it waits';
    const items = await this.inBackground();
    return items.length > 0 ? `${items.length} are in the background` : undefined;
  }

  /** Makes waiting work run at once, if anything is left of it. */
  async retry(): Promise<void> {
    if (this.work.waits === true) await rpcCall(this.#target, 'providers.retry', { provider: providerOf(this.index) });
  }

  async runs(state: { readonly state?: 'active' } = {}) {
    const { runs } = Roots.parse(await rpcCall(this.#target, 'run.list', { ...state, limit: 200 }));
    return runs.filter((run) => run.agentId === this.agentId);
  }

  async inBackground() {
    return Items.parse(await rpcCall(this.#target, 'background.list', { agentId: this.agentId })).items;
  }

  /** Stops the rest, so that the next cell is alone. */
  async cleanUp(): Promise<void> {
    const call = (method: string, params: object) => rpcCall(this.#target, method, params).catch(() => undefined);
    if (isHook(this.cell.work)) {
      for (const { rootRunId } of await this.runs({ state: 'active' })) await call('run.kill', { rootRunId });
      await call('agents.suspend', { agentId: this.agentId });
    } else await call('agents.delete', { agentId: this.agentId });
  }

  async #atWork(): Promise<void> {
    for (const deadline = performance.now() + beginMs; performance.now() < deadline; await pause(30)) {
      if (this.#model.lastAsked(this.nonce) === 0) continue;
      if (this.work.processes > 0 && (await sleeping(this.nonce)) < this.work.processes) continue;
      if (this.work.waits === true && (await this.runs()).every((run) => run.waiting?.kind !== 'provider')) continue;
      if (this.cell.work === 'call' && (await this.inBackground()).length === 0) continue;
      // Into the tool loop, the approval or the queue.
      if (this.work.processes === 0) await pause(200);
      return;
    }
    throw new Error('the work did not begin');
  }

  async #rootOf(): Promise<string> {
    const [run] = await this.runs({ state: 'active' });
    const [item] = await this.inBackground();
    const found = run?.rootRunId ?? item?.rootRunId;
    if (found === undefined) throw new Error('the work has no root that could be killed');
    return found;
  }
}

/** Processes of this machine, jailed ones too, that sleep as long as those of this round. */
export async function sleeping(nonce: string): Promise<number> {
  const seconds = secondsOf(nonce);
  let found = 0;
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.startsWith(`sleep\0${seconds}\0`)) found += 1;
  }
  return found;
}
