import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { nonceOf, proofConfig } from './lib/provider.ts';
import { type Random, randomFrom } from './lib/random.ts';
import { rpcCall, type RpcTarget } from './lib/rpc.ts';
import { type Acknowledged, faultsIn } from './lib/delegation-checks.ts';
import { isQuiet, readBooks } from './lib/delegation-books.ts';
import { startDelegationModel, tasks } from './lib/delegation-model.ts';

/**
 * R6 for delegation: the daemon is killed while parents, children, graphs and messages between conversations are active. After a
 * restart everything that was accepted has exactly one correct end, is announced once, and no orphaned work continues.
 */
export const delegationKillPoints = [
  'before a run is accepted',
  'after a run is accepted',
  'before a run begins',
  'after a run has begun',
  'before the turn of a run is opened',
  'before the end of a run is committed',
  'after the end of a run is committed',
  'before a failed run is announced',
  'after a failed run is announced',
  'before an announcement is claimed',
  'after an announcement is claimed',
  'after an announcement is delivered',
  'before a graph is accepted',
  'after a graph is accepted',
  'after a node has begun a run',
  'after the run of a node has ended',
  'between two attempts of a node',
  'before a step of a debate is stored',
  'after the end of a node is stored',
  'while a gate is pending',
  'after the answer of a person',
  'before the end of a graph is committed',
  'after the end of a graph is committed',
  'before a graph is announced',
  'before a message is accepted',
  'after a message is accepted',
  'before an answer is stored',
  'after an answer is stored',
  'before a kill is committed',
  'after a kill is committed',
  'after a killed run has ended',
] as const;
export type DelegationKillPoint = (typeof delegationKillPoints)[number];

export interface R6DelegationOptions {
  readonly points?: readonly DelegationKillPoint[];
  /** Number of kills at random moments, in addition to those at points. */
  readonly randomKills: number;
  readonly seed: number;
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}

export interface R6DelegationReport {
  readonly kills: number;
  /** Stored work, acknowledged or not. */
  readonly runs: number;
  readonly graphs: number;
  readonly messages: number;
  readonly wrong: readonly string[];
}

const withinMs = 30_000;
/** The work of a round takes about two seconds, including a retry delay of one. */
const latestKillMs = 2_500;

export async function proveKilledDelegation({ points = [], randomKills, seed, broken, progress }: R6DelegationOptions): Promise<R6DelegationReport> {
  const random = randomFrom(seed);
  const model = await startDelegationModel({ delayMs: 15 });
  const home = await makeHome();
  const port = await freePort();
  const worker = { model: 'local/test-model', tools: { profile: 'full' } };
  await writeConfig(home, {
    ...proofConfig(model.url, { agents: { default: { ...worker, maxConcurrentRuns: 1000 }, second: worker } }),
    security: { agentToAgent: { subAgentToolGroups: ['coding', 'sessions'], subagentContext: { maxChildrenPerAgent: 20 } } },
    approvals: { rules: [{ tools: ['sessions_spawn', 'subagents'], action: 'auto', tainted: true }] },
  });
  const wrong = new Set<string>();
  const acked = { runs: [] as string[], graphs: [] as string[], sends: [] as string[] };
  const faults = broken === undefined ? [] : [broken];
  let kills = 0;
  try {
    const first = await startDaemon({ home, port });
    const { conversationRef: post } = Turn.parse(await rpcCall(first, 'agent.execute', { message: 'Hello', sessionKey: 'post:proof' }));
    await first.stop();
    const rounds: readonly (DelegationKillPoint | undefined)[] = [...points, ...Array.from({ length: randomKills }, () => undefined)];
    for (const [round, point] of rounds.entries()) {
      const name = point ?? `random kill ${round}`;
      const doomed =
        point === undefined
          ? await startDaemon({ home, port, broken: faults })
          : await startDaemon({ home, port, broken: ['killed-in-delegation', ...faults], env: { KILL_AT: point }, readyTimeoutMs: 60_000 });
      const work = new Round({ port, token: doomed.token }, { nonce: nonceOf([seed, round]), post, acked });
      const begun = work.begin();
      if (!(await dies(doomed, point, random))) wrong.add(`${name}: the daemon never reached the point`);
      kills += 1;
      work.leave();
      await begun;
      await ageBoots(home);
      const daemon = await startDaemon({ home, port, broken: faults });
      try {
        await work.finish();
        await quiet(home);
        for (const fault of faultsIn(await readBooks(home), acked))
          if (![...wrong].some((known) => known.endsWith(fault))) wrong.add(`${name}: ${fault}`);
      } finally {
        work.leave();
        await daemon.kill();
        await ageBoots(home);
      }
      progress?.(`R6 delegation, ${name}: ${wrong.size} wrong after ${kills} kills`);
    }
    const books = await readBooks(home);
    return { kills, runs: books.runs.length, graphs: books.graphs.length, messages: books.sends.length, wrong: [...wrong] };
  } finally {
    await model.close();
    await removeHome(home);
  }
}

async function dies(daemon: Daemon, point: DelegationKillPoint | undefined, random: Random): Promise<boolean> {
  if (point === undefined) {
    await pause(random.int(latestKillMs));
    await daemon.kill();
    return true;
  }
  const died = await Promise.race([daemon.exited, pause(withinMs)]);
  await daemon.kill();
  return died !== undefined;
}

/** Waits until all accepted work has ended; the checks report what has not. */
async function quiet(home: string): Promise<void> {
  for (const deadline = performance.now() + withinMs; performance.now() < deadline; await pause(50)) if (isQuiet(await readBooks(home))) return;
}

const Turn = z.looseObject({ conversationRef: z.string() });
const Spawned = z.looseObject({ runId: z.string(), rootRunId: z.string() });
const Begun = z.looseObject({ graphId: z.string() });
const Graph = z.looseObject({ nodes: z.record(z.string(), z.looseObject({ waitsForAnswer: z.boolean().optional(), status: z.string() })) });
const Runs = z.looseObject({ runs: z.array(z.looseObject({ status: z.string(), task: z.string(), rootRunId: z.string() })) });

type Acked = { readonly [Kind in keyof Acknowledged]: string[] };

/** Starts all work of one round, and answers its gates. */
class Round {
  readonly #target: RpcTarget;
  readonly #nonce: string;
  /** An existing conversation. */
  readonly #post: string;
  readonly #acked: Acked;
  #isStopped = false;
  #graphId: string | undefined;

  constructor(target: RpcTarget, about: { readonly nonce: string; readonly post: string; readonly acked: Acked }) {
    this.#target = target;
    this.#nonce = about.nonce;
    this.#post = about.post;
    this.#acked = about.acked;
  }

  /** Starts everything; answers may be missing, because a kill may come first. */
  async begin(): Promise<void> {
    const nonce = this.#nonce;
    await Promise.all(
      [
        this.#call('agent.execute', { message: `${tasks.delegate} ${nonce}`, sessionKey: `${nonce}:proof` }),
        this.#spawn(tasks.look),
        this.#spawn(tasks.fail),
        this.#graph(),
        this.#call('graph.execute', {
          nodes: [{ node_id: 'report', task: `${tasks.report} ${nonce}`, agent: 'default' }],
          announceChannelType: 'gateway',
          announceChannelId: this.#post,
        }).then((result) => this.#acked.graphs.push(Begun.parse(result).graphId)),
        this.#send('fire-and-forget'),
        this.#send('ping-pong'),
        this.#spawn(tasks.hold).then(({ rootRunId }) => this.#call('run.kill', { rootRunId })),
      ].map((one) => one.catch(() => undefined)),
    );
  }

  /** Completes the round after the restart: answers gates, and kills endless runs, unless that was acknowledged before. */
  async finish(): Promise<void> {
    this.#isStopped = false;
    await Promise.all([this.#answer(), this.#release()]);
  }

  leave(): void {
    this.#isStopped = true;
  }

  #call(method: string, params: object): Promise<unknown> {
    return rpcCall(this.#target, method, params, { timeoutMs: withinMs });
  }

  async #spawn(task: string): Promise<z.output<typeof Spawned>> {
    const spawned = Spawned.parse(await this.#call('session.spawn', { task: `${task} ${this.#nonce}` }));
    this.#acked.runs.push(spawned.runId);
    return spawned;
  }

  async #send(mode: string): Promise<void> {
    const text = `${tasks.message} ${this.#nonce} (${mode})`;
    await this.#call('session.send', { conversationRef: this.#post, text, mode, maxTurns: 2 });
    this.#acked.sends.push(text);
  }

  async #graph(): Promise<void> {
    const task = (text: string) => `${text} ${this.#nonce}`;
    const both = ['default', 'second'];
    const nodes = [
      { node_id: 'gather', task: task(tasks.gather), agent: 'default', retries: 1 },
      { node_id: 'debate', task: task(tasks.debate), depends_on: ['gather'], type_id: 'debate', type_config: { agents: both, rounds: 1 } },
      { node_id: 'vote', task: task(tasks.vote), type_id: 'vote', type_config: { voters: both } },
      { node_id: 'gate', task: 'May it be sent?', depends_on: ['vote'], type_id: 'approval-gate', type_config: { message: 'May it be sent?' } },
      { node_id: 'report', task: task(tasks.report), agent: 'default', depends_on: ['debate', 'gate'] },
    ];
    const label = this.#nonce;
    const result = await this.#call('graph.execute', { nodes, label, announceChannelType: 'gateway', announceChannelId: 'inbox' });
    this.#graphId = Begun.parse(result).graphId;
    this.#acked.graphs.push(this.#graphId);
    await this.#answer();
  }

  /** Answers the gate as soon as it asks, even when the acknowledgement of the graph was lost. */
  async #answer(): Promise<void> {
    const graphId = this.#graphId ?? this.#nonce;
    for (const deadline = performance.now() + withinMs; performance.now() < deadline && !this.#isStopped; await pause(30)) {
      const view = await this.#call('graph.status', { graphId }).catch(() => undefined);
      // The graph was never accepted.
      if (view === undefined) return;
      const gate = Graph.parse(view).nodes['gate'];
      if (gate?.status === 'completed' || gate?.status === 'failed' || gate?.status === 'skipped') return;
      if (gate?.waitsForAnswer === true) await this.#call('graph.answer', { graphId, nodeId: 'gate', answer: 'yes' }).catch(() => undefined);
    }
  }

  /** Kills endless runs, including stored ones without an acknowledgement. */
  async #release(): Promise<void> {
    const { runs } = Runs.parse(await this.#call('subagent.list', {}));
    for (const { status, task, rootRunId } of runs)
      if ((status === 'queued' || status === 'running') && task.includes(tasks.hold))
        await this.#call('run.kill', { rootRunId }).catch(() => undefined);
  }
}

/** Backdates the boots: three crashes within five minutes correctly suspend the agents, and here every round crashes. */
async function ageBoots(home: string): Promise<void> {
  const file = join(home, 'data', 'boots.json');
  const boots = z.array(z.looseObject({ startedAtMs: z.number() })).parse(JSON.parse(await readFile(file, 'utf8')));
  await writeFile(file, JSON.stringify(boots.map((boot) => ({ ...boot, startedAtMs: boot.startedAtMs - 600_000 }))));
}
