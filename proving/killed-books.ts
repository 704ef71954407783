import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type FakeRequest, startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type Daemon, pause, spawnDaemon, startDaemon } from './lib/daemon.ts';
import { ageBoots, makeHome, removeHome, writeConfig } from './lib/home.ts';
import { proofConfig } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';
import type { KillPoint } from './r6-killed-turns.ts';

export interface KilledBooksReport {
  readonly kills: number;
  /** Model calls that the provider answered. */
  readonly answered: number;
  /** Sums that differ from the journal of the provider. */
  readonly wrong: readonly string[];
}

interface Sums {
  readonly calls: number;
  readonly tokens: number;
  readonly nano: number;
}

const Totals = z.object({ totals: z.object({ calls: z.number(), inputTokens: z.number(), outputTokens: z.number(), costUsd: z.number() }) });
const Snapshot = z.object({ callCount: z.number(), totalTokens: z.number(), totalCost: z.number() });
const Providers = z.object({ providers: z.array(Snapshot) });
const Explained = z.object({ likelyRootCause: z.object({ code: z.string() }).nullable(), cost: z.object({ costUsd: z.number() }) });
const Runs = z.object({ runs: z.array(z.object({ status: z.string() })) });

const withinMs = 30_000;
const agentIds = ['default', 'capped'] as const;
const job = 'books';
const sessionKeys = agentIds.map((agentId) => `books:${agentId}`);

/**
 * Kills turns after the model has answered and before their commit: some bound to a request, one of a job at two points of its life, some under a
 * cap in money. Every answer that the provider gave is in the books of the next daemon, once, with its price.
 */
export async function proveKilledBooks({ broken }: { readonly broken?: string } = {}): Promise<KilledBooksReport> {
  const answered: Sums[] = [];
  const provider = await startFakeProvider({
    answer: ({ body, path }: FakeRequest) => {
      if (!path.endsWith('/chat/completions')) return undefined;
      // Different figures for each call, so that no sum is right by chance.
      const usage = { input: 1000 + answered.length, output: 10 + 3 * answered.length };
      answered.push({ calls: 1, tokens: usage.input + usage.output, nano: usage.input * 1000 + usage.output * 2000 });
      const asksAgain = JSON.stringify(body).includes('look around') && !JSON.stringify(body).includes('"tool_calls"');
      return asksAgain ? { toolCalls: [{ id: 'look', name: 'ls', arguments: '{}' }], usage } : { text: 'Done', usage };
    },
  });
  const home = await makeHome();
  const port = await freePort();
  const agent = { model: 'local/test-model', tools: { profile: 'full' }, memory: { recall: { enabled: false } } };
  await writeConfig(home, proofConfig(provider.url, { agents: { default: agent, capped: { ...agent, budgets: { perDayUsd: 1 } } } }));
  const wrong: string[] = [];
  let kills = 0;

  async function killAt(point: KillPoint, begin: (daemon: Daemon) => Promise<unknown>): Promise<void> {
    const daemon = await startDaemon(doomedAt(point));
    // Records of the killed turn before are stored within a second after the start, and a kill before that would lose them.
    if (broken === undefined) for (const sessionKey of sessionKeys.slice(0, kills)) await whenExplained(daemon, sessionKey);
    // No answer comes: the kill is first.
    begin(daemon).catch(() => undefined);
    await whenDead(daemon, point);
  }
  async function whenExplained(daemon: Daemon, sessionKey: string): Promise<void> {
    for (const until = performance.now() + withinMs; performance.now() < until; await pause(50))
      if (Explained.safeParse(await rpcCall(daemon, 'obs.explain', { sessionKey })).success) return;
  }
  const doomedAt = (point: KillPoint) => ({
    home,
    port,
    broken: ['killed-in-turn', ...(broken === undefined ? [] : [broken])],
    env: { KILL_AT: point },
  });
  async function whenDead(daemon: Pick<Daemon, 'exited' | 'kill'>, point: KillPoint): Promise<void> {
    const died = await Promise.race([daemon.exited, pause(withinMs)]);
    if (died === undefined) {
      await daemon.kill();
      throw new Error(`the daemon never reached the point "${point}"`);
    }
    kills += 1;
    await ageBoots(home);
  }
  const ask = (agentId: string) => (daemon: Daemon) =>
    rpcCall(daemon, 'agent.execute', { agentId, message: 'Say something', sessionKey: `books:${agentId}` });
  // The first two answers were those of the conversations, one each; nothing else of them was stored.
  const ofSessions = () => sumOf(answered.slice(0, agentIds.length));

  try {
    for (const agentId of agentIds) await killAt('after the answer of the model', ask(agentId));
    await killAt('before the end is committed', (daemon) => startJob(daemon));
    // The job continues at once, perhaps before the daemon is ready, and is killed again.
    await whenDead(spawnDaemon(doomedAt('after the answer of the model')), 'after the answer of the model');
    const daemon = await startDaemon({ home, port, ...(broken !== undefined && { broken }) });
    try {
      await whenRun(daemon);
      wrong.push(...(await compare(daemon, 'after the kills', sumOf(answered), sumOf(answered), ofSessions())));
      // What follows would differ as well.
      if (broken !== undefined) return { kills, answered: answered.length, wrong };
      for (const sessionKey of sessionKeys) {
        const { likelyRootCause, cost } = Explained.parse(await rpcCall(daemon, 'obs.explain', { sessionKey }));
        if (likelyRootCause?.code !== 'daemon_interrupted' || !(cost.costUsd > 0))
          wrong.push(`${sessionKey} is explained by ${String(likelyRootCause?.code)} at ${cost.costUsd} dollars`);
      }
      await rpcCall(daemon, 'obs.reset', {});
      const before = answered.length;
      await ask('capped')(daemon);
      wrong.push(...(await compare(daemon, 'after a reset', sumOf(answered), sumOf(answered.slice(before)))));
      await daemon.kill();
      await ageBoots(home);
      const last = await startDaemon({ home, port });
      wrong.push(...(await compare(last, 'after the last restart', sumOf(answered), sumOf(answered.slice(before)))));
      await last.kill();
    } finally {
      await daemon.kill();
    }
  } finally {
    await provider.close();
    await removeHome(home);
  }
  return { kills, answered: answered.length, wrong };
}

async function startJob(daemon: Daemon): Promise<void> {
  const payload = { kind: 'agent_turn', message: 'Please look around' };
  const added = { name: job, agentId: 'capped', schedule: { kind: 'every', everyMs: 86_400_000 }, payload };
  await eventually(() =>
    rpcCall(daemon, 'cron.add', added).then(
      () => true,
      () => false,
    ),
  );
  await rpcCall(daemon, 'cron.run', { jobName: job, agentId: 'capped' });
}

async function whenRun(daemon: Daemon): Promise<void> {
  await eventually(async () => {
    const { runs } = Runs.parse(await rpcCall(daemon, 'cron.runs', { jobName: job, agentId: 'capped' }));
    return runs[0]?.status === 'completed';
  });
}

async function eventually(is: () => Promise<boolean>): Promise<void> {
  for (const deadline = performance.now() + withinMs; performance.now() < deadline; await pause(30)) if (await is()) return;
  throw new Error('the job did not run');
}

/** Returns the differences of the books to what the provider answered: in all, since the last reset, and of the conversations since then. */
async function compare(daemon: Daemon, when: string, all: Sums, sinceReset: Sums, ofSessions = sinceReset): Promise<string[]> {
  const { totals } = Totals.parse(await rpcCall(daemon, 'usage.report', { groupBy: ['provider'] }));
  const total = Snapshot.parse(await rpcCall(daemon, 'obs.billing.total', {}));
  const { providers } = Providers.parse(await rpcCall(daemon, 'obs.billing.byProvider', {}));
  const agents: unknown[] = await Promise.all(agentIds.map((agentId) => rpcCall(daemon, 'obs.billing.byAgent', { agentId })));
  const sessions: unknown[] = await Promise.all(sessionKeys.map((sessionKey) => rpcCall(daemon, 'obs.billing.bySession', { sessionKey })));
  const reported = { calls: totals.calls, tokens: totals.inputTokens + totals.outputTokens, nano: nanoOf(totals.costUsd) };
  const found: readonly (readonly [string, Sums, Sums])[] = [
    ['usage.report', reported, all],
    ['obs.billing.total', toSums(total), sinceReset],
    ['obs.billing.byProvider', sumOf(providers.map(toSums)), sinceReset],
    ['obs.billing.byAgent', sumOf(agents.map((one) => toSums(Snapshot.parse(one)))), sinceReset],
    ['obs.billing.bySession', sumOf(sessions.map((one) => toSums(Snapshot.parse(one)))), ofSessions],
  ];
  return found.flatMap(([name, is, should]) =>
    JSON.stringify(is) === JSON.stringify(should) ? [] : [`${when}, ${name}: ${JSON.stringify(is)} instead of ${JSON.stringify(should)}`],
  );
}

const nanoOf = (usd: number): number => Math.round(usd * 1e9);
const toSums = ({ callCount, totalTokens, totalCost }: z.output<typeof Snapshot>): Sums => ({
  calls: callCount,
  tokens: totalTokens,
  nano: nanoOf(totalCost),
});

function sumOf(sums: readonly Sums[]): Sums {
  const sum = (of: (one: Sums) => number) => sums.reduce((total, one) => total + of(one), 0);
  return { calls: sum(({ calls }) => calls), tokens: sum(({ tokens }) => tokens), nano: sum(({ nano }) => nano) };
}
