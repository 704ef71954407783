import { readdir, readFile } from 'node:fs/promises';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { nonceOf, proofConfig } from './lib/provider.ts';
import { openSocket, rpcCall } from './lib/rpc.ts';
import { bearer, http } from './lib/http.ts';
import { duties, secondsOf, startStopModel, type StopModel } from './lib/stop-model.ts';
import { type Books, readBooks } from './lib/delegation-books.ts';

/**
 * R32 on one node: how long it takes until a kill (2 s) or a revocation (5 s) takes effect on an agent that starts others,
 * on their commands and their scripts; that nothing of them is left, and nothing new starts.
 */
export const stopKinds = ['run.kill', 'subagent.kill', 'lease.revoke', 'tokens.revoke'] as const;
export type StopKind = (typeof stopKinds)[number];

export interface R32Report {
  readonly rounds: number;
  /** The longest time to effect, in milliseconds. */
  readonly slowestMs: Readonly<Record<string, number>>;
  /** Runs and processes that were active when they were stopped. */
  readonly runs: number;
  readonly processes: number;
  readonly wrong: readonly string[];
}

const limitMs: Readonly<Record<StopKind, number>> = { 'run.kill': 2000, 'subagent.kill': 2000, 'lease.revoke': 5000, 'tokens.revoke': 5000 };
const beginMs = 20_000;

const Spawned = z.looseObject({ runId: z.string(), rootRunId: z.string() });
const Token = z.looseObject({ id: z.string(), secret: z.string() });

export async function proveStops(options: {
  readonly rounds: number;
  readonly seed: number;
  readonly kinds?: readonly StopKind[];
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}): Promise<R32Report> {
  const [home, port, model] = [await makeHome(), await freePort(), await startStopModel()];
  const agent = { model: 'local/test-model', maxConcurrentRuns: 1000, tools: { profile: 'full' } };
  await writeConfig(home, {
    ...proofConfig(model.url, { agents: { default: agent } }),
    security: { agentToAgent: { subAgentToolGroups: ['coding', 'sessions'], subAgentMaxSteps: 1000, subagentContext: { maxChildrenPerAgent: 20 } } },
    autonomy: { guards: { spawn: { perMinute: 1000 } } },
    approvals: { rules: [{ tools: ['sessions_spawn', 'exec', 'orchestrate'], action: 'auto', tainted: true }] },
  });
  const report = { rounds: 0, slowestMs: {} as Record<string, number>, runs: 0, processes: 0, wrong: [] as string[] };
  let daemon: Daemon | undefined;
  try {
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    for (let round = 0; round < options.rounds; round += 1) {
      for (const [index, kind] of (options.kinds ?? stopKinds).entries()) {
        const stop = new Stop(daemon, model, { kind, nonce: nonceOf([options.seed, round * stopKinds.length + index]) });
        const { tookMs, runs, processes, wrong } = await stop.play();
        report.rounds += 1;
        report.slowestMs[kind] = Math.max(report.slowestMs[kind] ?? 0, Math.round(tookMs));
        report.runs += runs;
        report.processes += processes;
        report.wrong.push(...wrong.map((line) => `${kind} ${round}: ${line}`));
      }
      options.progress?.(`R32 after ${round + 1} rounds: ${JSON.stringify(report.slowestMs)} ms, ${report.wrong.length} wrong`);
    }
    return report;
  } finally {
    await daemon?.kill();
    await model.close();
    await removeHome(home);
  }
}

class Stop {
  readonly #daemon: Daemon;
  readonly #model: StopModel;
  readonly #kind: StopKind;
  readonly #nonce: string;
  readonly #wrong: string[] = [];

  constructor(daemon: Daemon, model: StopModel, { kind, nonce }: { readonly kind: StopKind; readonly nonce: string }) {
    this.#daemon = daemon;
    this.#model = model;
    this.#kind = kind;
    this.#nonce = nonce;
  }

  async play(): Promise<{ readonly tookMs: number; readonly runs: number; readonly processes: number; readonly wrong: readonly string[] }> {
    const { port } = this.#daemon;
    const created = Token.parse(await rpcCall(this.#daemon, 'tokens.create', { scopes: ['rpc'] }));
    const holder = { port, token: created.secret };
    const socket = await openSocket(holder);
    let isClosed = false;
    void socket.closed.then(() => (isClosed = true));
    // A call in flight completes when leases are revoked, so that no new one without a lease is started there.
    const duty = this.#kind === 'lease.revoke' ? duties.loop : duties.lead;
    const head = Spawned.parse(await rpcCall(holder, 'session.spawn', { task: `${duty} ${this.#nonce}` }));
    await this.#isAtWork(head.rootRunId);
    const before = this.#of(await readBooks(this.#daemon.home), head.rootRunId);
    const processes = (await this.#processes()).length;
    const fromMs = performance.now();
    await this.#stop(head, created.id);
    const committedMs = Date.now();
    const asked = performance.now();
    const limit = limitMs[this.#kind];
    const effect = async (): Promise<string | undefined> => {
      const runs = this.#of(await readBooks(this.#daemon.home), head.rootRunId);
      const left = runs.filter(({ state }) => state === 'queued' || state === 'running');
      if (left.length > 0) return `${left.length} of ${runs.length} runs continue`;
      if ((await this.#processes()).length > 0) return `${(await this.#processes()).length} processes are left`;
      if (this.#kind === 'tokens.revoke' && !isClosed) return 'the socket of the token is open';
      return undefined;
    };
    let missing = await effect();
    while (missing !== undefined && performance.now() - fromMs < limit + 2000) {
      await pause(20);
      missing = await effect();
    }
    const tookMs = performance.now() - fromMs;
    if (missing !== undefined) this.#wrong.push(`${missing} after ${Math.round(tookMs)} ms`);
    else if (tookMs > limit) this.#wrong.push(`the effect came after ${Math.round(tookMs)} ms`);
    if (this.#kind === 'tokens.revoke' && (await this.#opens(holder))) this.#wrong.push('the token still opens something');
    await this.#nothingNew(head.rootRunId, { committedMs, asked, kills: this.#kind.endsWith('kill') });
    socket.close();
    // Stops the rest, so that the next round is alone.
    if (missing !== undefined) await rpcCall(this.#daemon, 'run.kill', { rootRunId: head.rootRunId }).catch(() => undefined);
    return { tookMs, runs: before.filter(({ state }) => state === 'running').length, processes, wrong: this.#wrong };
  }

  #of(books: Books, rootRunId: string) {
    return books.runs.filter((run) => run.root_run_id === rootRunId);
  }

  async #isAtWork(rootRunId: string): Promise<void> {
    for (const deadline = performance.now() + beginMs; performance.now() < deadline; await pause(30)) {
      const runs = this.#of(await readBooks(this.#daemon.home), rootRunId).filter(({ state }) => state === 'running');
      const processes = (await this.#processes()).length;
      if (this.#kind === 'lease.revoke' ? runs.length > 0 : runs.length >= 4 && processes >= 2) return;
    }
    throw new Error(
      `${this.#kind}: the agents did not come to work: ${JSON.stringify(this.#of(await readBooks(this.#daemon.home), rootRunId).slice(0, 5))}`,
    );
  }

  #stop({ runId, rootRunId }: z.output<typeof Spawned>, tokenId: string): Promise<unknown> {
    switch (this.#kind) {
      case 'run.kill':
        return rpcCall(this.#daemon, 'run.kill', { rootRunId });
      case 'subagent.kill':
        return rpcCall(this.#daemon, 'subagent.kill', { target: runId });
      case 'lease.revoke':
        return rpcCall(this.#daemon, 'lease.revoke', { rootRunId });
      case 'tokens.revoke':
        return rpcCall(this.#daemon, 'tokens.revoke', { id: tokenId });
    }
  }

  /** Sends from a separate address: failed logins are counted by it. */
  async #opens({ port, token }: { readonly port: number; readonly token: string }): Promise<boolean> {
    const n = Number(/(\d+)-end$/.exec(this.#nonce)?.[1]) + 1;
    const body = { jsonrpc: '2.0', id: 1, method: 'session.list', params: {} };
    const { status } = await http({ port, path: '/rpc', headers: bearer(token), body, localAddress: `127.0.${n >> 8}.${n & 255}` });
    return status !== 401;
  }

  /** After the answer of a kill no run starts and no model is called, except for calls in flight. */
  async #nothingNew(
    rootRunId: string,
    { committedMs, asked, kills }: { readonly committedMs: number; readonly asked: number; readonly kills: boolean },
  ): Promise<void> {
    if (!kills) return;
    await pause(100);
    const late = this.#of(await readBooks(this.#daemon.home), rootRunId).filter((run) => run.queued_at_ms > committedMs);
    if (late.length > 0) this.#wrong.push(`${late.length} runs began after the kill was committed`);
    const lateMs = this.#model.lastAsked(this.#nonce) - asked;
    if (lateMs > 100) this.#wrong.push(`a model was asked ${Math.round(lateMs)} ms after the kill was committed`);
  }

  /** Processes of this machine, jailed ones too, that sleep as long as those of this round. */
  async #processes(): Promise<string[]> {
    const seconds = secondsOf(this.#nonce);
    const found: string[] = [];
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
      const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      if (command.startsWith(`sleep\0${seconds}\0`)) found.push(pid);
    }
    return found;
  }
}
