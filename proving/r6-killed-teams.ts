import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { freePort, makeHome, removeHome, writeConfig } from './lib/home.ts';
import { nonceOf, proofConfig } from './lib/provider.ts';
import { type Random, randomFrom } from './lib/random.ts';
import { rpcCall, type RpcTarget } from './lib/rpc.ts';
import { type Acknowledged, faultsIn } from './lib/team-checks.ts';
import { isQuiet, readBooks } from './lib/team-books.ts';
import { startTeamModel, tasks } from './lib/team-model.ts';

/**
 * R6 for teams: the daemon is killed while parents, children, graphs and messages between conversations are at work. After a
 * restart each that was accepted has one end, which is true, and is told once; nothing runs on that belongs to nobody.
 */
export const teamKillPoints = [
  'before a run is accepted',
  'after a run is accepted',
  'before a run begins',
  'after a run has begun',
  'before the turn of a run is opened',
  'before the end of a run is committed',
  'after the end of a run is committed',
  'before a failed run is told',
  'after a failed run is told',
  'before news are taken',
  'after news are taken',
  'after news are told',
  'before a graph is accepted',
  'after a graph is accepted',
  'after a node has begun a run',
  'after the run of a node has ended',
  'between two tries of a node',
  'before a step of a debate is kept',
  'after the end of a node is kept',
  'while a gate asks',
  'after the answer of a person',
  'before the end of a graph is committed',
  'after the end of a graph is committed',
  'before a graph is told',
  'before a message is accepted',
  'after a message is accepted',
  'before an answer is kept',
  'after an answer is kept',
  'before a kill is committed',
  'after a kill is committed',
  'after a killed run has ended',
] as const;
export type TeamKillPoint = (typeof teamKillPoints)[number];

export interface R6TeamsOptions {
  readonly points?: readonly TeamKillPoint[];
  /** Kills at moments of chance, beside those at points. */
  readonly randomKills: number;
  readonly seed: number;
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}

export interface R6TeamsReport {
  readonly kills: number;
  /** What was stored, acknowledged or not. */
  readonly runs: number;
  readonly graphs: number;
  readonly messages: number;
  readonly wrong: readonly string[];
}

const withinMs = 30_000;
/** A team is done after about two seconds, of which one is the pause between two tries. */
const latestKillMs = 2_500;

export async function proveKilledTeams({ points = [], randomKills, seed, broken, progress }: R6TeamsOptions): Promise<R6TeamsReport> {
  const random = randomFrom(seed);
  const model = await startTeamModel({ delayMs: 15 });
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
    const rounds: readonly (TeamKillPoint | undefined)[] = [...points, ...Array.from({ length: randomKills }, () => undefined)];
    for (const [round, point] of rounds.entries()) {
      const name = point ?? `random kill ${round}`;
      const doomed =
        point === undefined
          ? await startDaemon({ home, port, broken: faults })
          : await startDaemon({ home, port, broken: ['killed-in-team', ...faults], env: { KILL_AT: point }, readyTimeoutMs: 60_000 });
      const team = new Team({ port, token: doomed.token }, { nonce: nonceOf([seed, round]), post, acked });
      const begun = team.begin();
      if (!(await dies(doomed, point, random))) wrong.add(`${name}: the daemon never came to the point`);
      kills += 1;
      team.leave();
      await begun;
      await ageBoots(home);
      const daemon = await startDaemon({ home, port, broken: faults });
      try {
        await team.finish();
        await quiet(home);
        for (const fault of faultsIn(readBooks(home), acked)) if (![...wrong].some((known) => known.endsWith(fault))) wrong.add(`${name}: ${fault}`);
      } finally {
        team.leave();
        await daemon.kill();
        await ageBoots(home);
      }
      progress?.(`R6 teams, ${name}: ${wrong.size} wrong after ${kills} kills`);
    }
    const books = readBooks(home);
    return { kills, runs: books.runs.length, graphs: books.graphs.length, messages: books.sends.length, wrong: [...wrong] };
  } finally {
    await model.close();
    await removeHome(home);
  }
}

async function dies(daemon: Daemon, point: TeamKillPoint | undefined, random: Random): Promise<boolean> {
  if (point === undefined) {
    await pause(random.int(latestKillMs));
    await daemon.kill();
    return true;
  }
  const died = await Promise.race([daemon.exited, pause(withinMs)]);
  await daemon.kill();
  return died !== undefined;
}

/** Waits until all that was accepted has ended; what has not by then shows in the books. */
async function quiet(home: string): Promise<void> {
  for (const deadline = performance.now() + withinMs; performance.now() < deadline; await pause(50)) if (isQuiet(readBooks(home))) return;
}

const Turn = z.looseObject({ conversationRef: z.string() });
const Spawned = z.looseObject({ runId: z.string(), rootRunId: z.string() });
const Begun = z.looseObject({ graphId: z.string() });
const Graph = z.looseObject({ nodes: z.record(z.string(), z.looseObject({ waitsForAnswer: z.boolean().optional(), status: z.string() })) });
const Runs = z.looseObject({ runs: z.array(z.looseObject({ status: z.string(), task: z.string(), rootRunId: z.string() })) });

type Acked = { readonly [Kind in keyof Acknowledged]: string[] };

/** Everything that is set going in one round, and the people who answer its questions. */
class Team {
  readonly #target: RpcTarget;
  readonly #nonce: string;
  /** A conversation that is there. */
  readonly #post: string;
  readonly #acked: Acked;
  #isLeft = false;
  #graphId: string | undefined;

  constructor(target: RpcTarget, about: { readonly nonce: string; readonly post: string; readonly acked: Acked }) {
    this.#target = target;
    this.#nonce = about.nonce;
    this.#post = about.post;
    this.#acked = about.acked;
  }

  /** Sets everything going; none of it need be answered, because a kill may come first. */
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

  /** After the restart: answers what is asked, and kills what would never end, where that was not acknowledged before. */
  async finish(): Promise<void> {
    this.#isLeft = false;
    await Promise.all([this.#answer(), this.#release()]);
  }

  leave(): void {
    this.#isLeft = true;
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
    const task = (words: string) => `${words} ${this.#nonce}`;
    const both = ['default', 'second'];
    const nodes = [
      { node_id: 'gather', task: task(tasks.gather), agent: 'default', retries: 1 },
      { node_id: 'debate', task: task(tasks.debate), depends_on: ['gather'], type_id: 'debate', type_config: { agents: both, rounds: 1 } },
      { node_id: 'vote', task: task(tasks.vote), type_id: 'vote', type_config: { voters: both } },
      { node_id: 'gate', task: 'May it be told?', depends_on: ['vote'], type_id: 'approval-gate', type_config: { message: 'May it be told?' } },
      { node_id: 'report', task: task(tasks.report), agent: 'default', depends_on: ['debate', 'gate'] },
    ];
    const label = this.#nonce;
    const result = await this.#call('graph.execute', { nodes, label, announceChannelType: 'gateway', announceChannelId: 'inbox' });
    this.#graphId = Begun.parse(result).graphId;
    this.#acked.graphs.push(this.#graphId);
    await this.#answer();
  }

  /** Answers the gate as soon as it asks, also when the acknowledgement of the graph was lost. */
  async #answer(): Promise<void> {
    const graphId = this.#graphId ?? this.#nonce;
    for (const deadline = performance.now() + withinMs; performance.now() < deadline && !this.#isLeft; await pause(30)) {
      const view = await this.#call('graph.status', { graphId }).catch(() => undefined);
      // Of a graph that was never accepted there is nothing to answer.
      if (view === undefined) return;
      const gate = Graph.parse(view).nodes['gate'];
      if (gate?.status === 'completed' || gate?.status === 'failed' || gate?.status === 'skipped') return;
      if (gate?.waitsForAnswer === true) await this.#call('graph.answer', { graphId, nodeId: 'gate', answer: 'yes' }).catch(() => undefined);
    }
  }

  /** Also what was stored and not acknowledged. */
  async #release(): Promise<void> {
    const { runs } = Runs.parse(await this.#call('subagent.list', {}));
    for (const { status, task, rootRunId } of runs)
      if ((status === 'queued' || status === 'running') && task.includes(tasks.hold))
        await this.#call('run.kill', { rootRunId }).catch(() => undefined);
  }
}

/** Three crashes within five minutes rightly stop the agents of a daemon; here every run crashes. */
async function ageBoots(home: string): Promise<void> {
  const file = join(home, 'data', 'boots.json');
  const boots = z.array(z.looseObject({ startedAtMs: z.number() })).parse(JSON.parse(await readFile(file, 'utf8')));
  await writeFile(file, JSON.stringify(boots.map((boot) => ({ ...boot, startedAtMs: boot.startedAtMs - 600_000 }))));
}
