import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type FakeProvider, type FakeRequest, startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { pause, startDaemon } from './lib/daemon.ts';
import { ageBoots, makeHome, removeHome, writeConfig } from './lib/home.ts';
import { nonceOf, noncesIn, proofConfig } from './lib/provider.ts';
import { rpcCall, RpcFailure, type RpcTarget } from './lib/rpc.ts';

/**
 * R6: a turn of durable work is killed at a named point of its life. After a restart it was resumed, or is
 * marked unknown and says so; it is never silently lost, and what runs once never runs twice.
 */
export const killPoints = [
  'after the acceptance',
  'before the claim',
  'after the claim',
  'after the row of the turn',
  'before a call of the model',
  'after the answer of the model',
  'after a tool that may be repeated',
  'after a finished step',
  'before an intent',
  'after an intent',
  'after a tool that runs once',
  'before the end is committed',
  'after the end is committed',
] as const;
export type KillPoint = (typeof killPoints)[number];

export interface R6Options {
  readonly points?: readonly KillPoint[];
  readonly rounds?: number;
  /** Fault files in addition to the kill, and after it. */
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}

export interface R6Report {
  readonly kills: number;
  readonly resumed: number;
  readonly unknown: number;
  /** Neither done nor marked in time. */
  readonly gone: readonly string[];
  /** Done twice, or reported as done and not. */
  readonly wrong: readonly string[];
  /** Marked unknown, and neither the conversation nor the audit says so. */
  readonly unannounced: readonly string[];
}

const Runs = z.object({ runs: z.array(z.object({ status: z.string(), executionId: z.string() })) });
const Browse = z.object({ entries: z.array(z.object({ content: z.string() })) });
const Sessions = z.object({ sessions: z.array(z.object({ conversationRef: z.string() })) });
const History = z.object({ messages: z.array(z.object({ role: z.string(), content: z.string() })) });
const Audit = z.object({ rows: z.array(z.object({ action: z.string() })) });

const withinMs = 30_000;
/** Data of a JSON-RPC error that asks to retry. */
const unavailable = -32_006;

export async function proveKilledTurns({ points = killPoints, rounds = 1, broken, progress }: R6Options): Promise<R6Report> {
  const provider = await startWorkingProvider();
  const home = await makeHome();
  const port = await freePort();
  // Memories of earlier rounds would count as text from outside, in whose presence nothing is remembered without approval.
  const worker = { model: 'local/test-model', tools: { profile: 'full' }, memory: { recall: { enabled: false } } };
  await writeConfig(home, proofConfig(provider.url, { agents: { worker } }));
  const report = { kills: 0, resumed: 0, unknown: 0, gone: [] as string[], wrong: [] as string[], unannounced: [] as string[] };
  const faults = broken === undefined ? [] : [broken];
  try {
    for (let round = 0; round < rounds; round += 1) {
      for (const point of points) {
        const nonce = nonceOf([round, points.indexOf(point)]);
        const doomed = await startDaemon({ home, port, broken: ['killed-in-turn', ...faults], env: { KILL_AT: point } });
        // The answer may not come any more, because the kill comes first.
        const begun = beginTurn({ port, token: doomed.token }, nonce).catch((error: unknown) => error);
        const died = await Promise.race([doomed.exited, pause(withinMs)]);
        if (died === undefined) {
          await doomed.kill();
          throw new Error(`the daemon never reached the point "${point}": ${String(await begun)}`);
        }
        report.kills += 1;
        await ageBoots(home);
        const daemon = await startDaemon({ home, port, ...(broken !== undefined && { broken }) });
        try {
          await check({ port, token: daemon.token }, nonce, point, report);
        } finally {
          await daemon.kill();
          await ageBoots(home);
        }
        progress?.(
          `R6 ${point}: ${report.resumed} resumed, ${report.unknown} unknown, ${report.gone.length} gone, ${report.wrong.length} wrong of ${report.kills}`,
        );
      }
    }
  } finally {
    await provider.close();
    await removeHome(home);
  }
  return report;
}

/** Lists a folder, then remembers the nonce and lists again, then answers; the request determines which of it is next. */
function startWorkingProvider(): Promise<FakeProvider> {
  return startFakeProvider({
    journal: 0,
    answer: ({ body, path }: FakeRequest) => {
      if (!path.endsWith('/chat/completions')) return undefined;
      const { messages } = z.object({ messages: z.array(z.looseObject({ role: z.string(), tool_calls: z.unknown().optional() })) }).parse(body);
      const asked = messages.findLastIndex(({ role }) => role === 'user');
      const steps = messages.slice(asked).filter((message) => message.tool_calls !== undefined).length;
      const nonce = noncesIn(messages[asked]).at(-1) ?? 'nothing';
      const look = { id: `look_${steps}`, name: 'ls', arguments: '{}' };
      const remember = { id: `remember_${steps}`, name: 'memory_store', arguments: JSON.stringify({ content: `The task was ${nonce}` }) };
      if (steps === 0) return { toolCalls: [look] };
      return steps === 1 ? { toolCalls: [remember, look] } : { text: `done ${nonce}` };
    },
  });
}

async function beginTurn(target: RpcTarget, nonce: string): Promise<void> {
  const payload = { kind: 'agent_turn', message: `Please do ${nonce}` };
  const job = { name: nonce, agentId: 'worker', schedule: { kind: 'every', everyMs: 86_400_000 }, payload };
  await whenReady(() => rpcCall(target, 'cron.add', job));
  await rpcCall(target, 'cron.run', { jobName: nonce, agentId: 'worker' });
}

/** The routes are open a moment before the schedules are read. */
async function whenReady(call: () => Promise<unknown>): Promise<void> {
  for (const deadline = performance.now() + withinMs; ; await pause(20)) {
    try {
      await call();
      return;
    } catch (error) {
      if (!(error instanceof RpcFailure) || error.code !== unavailable || performance.now() > deadline) throw error;
    }
  }
}

interface Findings {
  resumed: number;
  unknown: number;
  readonly gone: string[];
  readonly wrong: string[];
  readonly unannounced: string[];
}

async function check(target: RpcTarget, nonce: string, point: KillPoint, report: Findings): Promise<void> {
  const { gone, wrong, unannounced } = report;
  const status = await endOf(target, nonce);
  const remembered = await countMemories(target, nonce);
  if (status === undefined) gone.push(`${point}: still not ended`);
  else if (status === 'completed') {
    report.resumed += 1;
    if (remembered !== 1) wrong.push(`${point}: completed, remembered ${remembered} times`);
  } else if (status === 'unknown') {
    report.unknown += 1;
    if (remembered > 1) wrong.push(`${point}: unknown, remembered ${remembered} times`);
    const announced = await isAnnounced(target, nonce);
    if (!announced) unannounced.push(point);
  } else wrong.push(`${point}: ended as ${status}`);
}

async function endOf(target: RpcTarget, nonce: string): Promise<string | undefined> {
  const deadline = performance.now() + withinMs;
  while (performance.now() < deadline) {
    const { runs } = Runs.parse(await rpcCall(target, 'cron.runs', { jobName: nonce, agentId: 'worker' }));
    const [run] = runs;
    if (run !== undefined && run.status !== 'started') return run.status;
    await pause(50);
  }
  return undefined;
}

async function countMemories(target: RpcTarget, nonce: string): Promise<number> {
  const { entries } = Browse.parse(await rpcCall(target, 'memory.browse', { agentId: 'worker', limit: 500 }));
  return entries.filter(({ content }) => content.includes(nonce)).length;
}

async function isAnnounced(target: RpcTarget, nonce: string): Promise<boolean> {
  const { sessions } = Sessions.parse(await rpcCall(target, 'session.list', { agentId: 'worker', limit: 200 }));
  const { rows } = Audit.parse(await rpcCall(target, 'obs.audit.query', { limit: 100 }));
  if (!rows.some(({ action }) => action === 'turn.unknown')) return false;
  for (const { conversationRef } of sessions) {
    const { messages } = History.parse(await rpcCall(target, 'session.history', { conversationRef }));
    if (!messages.some(({ content }) => content.includes(nonce))) continue;
    return messages.at(-1)?.content.includes('it may or may not have taken effect') === true;
  }
  return false;
}
