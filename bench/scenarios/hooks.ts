import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@gatehouse/testkit/free-port';
import { runHttpLoad } from '../lib/client.ts';
import type { Measures } from '../lib/measures.ts';
import { clientCpu, cpuUs, start } from '../lib/proc.ts';
import { product, startReference, type ProductOptions, type Target } from '../lib/targets.ts';

/** Webhooks while turns run. */
export interface HookSample {
  /** CPU of the server for one accepted hook, microseconds: signature, mapping, commit and answer; the resulting turns wait. */
  readonly cpuPerHook: number;
  /** The same behind `backlog` hooks whose turns are pending. */
  readonly cpuBehind: number;
  /** CPU of R for one whole answer, microseconds. */
  readonly cpuOfR: number;
  /** Milliseconds to the answer, while turns stream. */
  readonly p50: number;
  readonly p99: number;
}

export interface HookOptions {
  readonly upstreamUrl: string;
  readonly rounds: number;
  /** Hooks of one load; ten thousand may be pending in total. */
  readonly hooks: number;
  /** Hooks whose turns are pending when the last loads start. */
  readonly backlog: number;
  /** How long the streams run, and the loads of R. */
  readonly ms: number;
  /** Turns that run meanwhile, of hooks and of callers each. */
  readonly turns: number;
  readonly settleMs: number;
  readonly product?: ProductOptions;
}

/** Turns of hooks that the daemon runs at once: with all slots taken, further hooks are only stored. */
const slots = 64;
/** Uncounted loads that are sent first: compiling costs more than a hook. */
const warm = 4;
const token = 'secret-of-the-webhooks-of-the-benchmark';

/** Measures the cost of a webhook, and how long its sender waits, while the daemon is busy with turns. */
export async function runHooks(options: HookOptions, measures: Measures): Promise<HookSample[]> {
  const { upstreamUrl, rounds, hooks, ms, turns } = options;
  await using stack = new AsyncDisposableStack();
  const slow = await freePort();
  const model = await start({
    args: [join(import.meta.dirname, '..', 'reference', 'slow-model.ts')],
    env: { PORT: String(slow), DELAY_MS: String(3_600_000) },
    healthUrl: `http://127.0.0.1:${slow}/health`,
    cpu: clientCpu,
  });
  stack.defer(model.stop);
  const { target: r, running: ofR } = await startReference({ name: 'R', file: 'raw-http.ts', upstreamUrl });
  stack.defer(ofR.stop);
  const subject = await product(upstreamUrl, {
    providers: { slow: { type: 'openai-compatible', baseUrl: `http://127.0.0.1:${slow}/v1`, apiKey: 'sk-slow', models: [{ id: 'slow' }] } },
    agents: { hooks: { model: 'slow/slow', maxConcurrentRuns: turns } },
    sections: {
      webhooks: {
        token,
        mappings: [{ id: 'bench', agentId: 'hooks', sessionKey: '{{key}}', dedupeKey: '{{id}}', messageTemplate: 'Look at {{text}}.' }],
      },
    },
    ...options.product,
  });
  if (subject === undefined) throw new Error('the product is not built');
  stack.defer(subject.dispose);
  const running = await subject.start();
  stack.defer(running.stop);
  // Pending turns would delay the stop.
  stack.defer(model.stop);
  const target = subject.target(running);
  await sleep(options.settleMs);
  await send(target, slots, 16);
  await untilRunning(target, turns);
  const cpuPerHook: number[] = [];
  const cpuOfR: number[] = [];
  for (let round = -1; round < rounds; round += 1) {
    const loads = [
      async () => cpuPerHook.push((await send(target, round < 0 ? warm * hooks : hooks, 16)).cpuPerHook),
      async () => cpuOfR.push(await costOfR(r, ms)),
    ];
    for (const load of round % 2 === 0 ? loads : loads.toReversed()) await load();
  }
  const answers: { readonly p50: number; readonly p99: number }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const meanwhile = async () => {
      await untilRunning(target, 2 * turns);
      answers.push(await send(target, hooks, 8));
    };
    await Promise.all([stream(target, turns, ms), meanwhile()]);
  }
  const taken = slots + (warm + 2 * rounds) * hooks;
  if (options.backlog > taken) await send(target, options.backlog - taken, 16);
  const cpuBehind: number[] = [];
  for (let round = 0; round < rounds; round += 1) cpuBehind.push((await send(target, hooks, 16)).cpuPerHook);
  // The first of each was to warm up.
  const samples = answers.map(({ p50, p99 }, round) => ({
    cpuPerHook: cpuPerHook[round + 1] ?? NaN,
    cpuOfR: cpuOfR[round + 1] ?? NaN,
    cpuBehind: cpuBehind[round] ?? NaN,
    p50,
    p99,
  }));
  measures.add('hooks cpu/R', ...samples.map((one) => one.cpuPerHook / one.cpuOfR));
  measures.add('hooks ack p99', ...samples.map(({ p99 }) => p99));
  measures.add('hooks behind/first', ...samples.map((one) => one.cpuBehind / one.cpuPerHook));
  return samples;
}

let sent = 0;

/** Sends different signed hooks over keep-alive connections, for two hundred conversations. */
async function send(target: Target, count: number, connections: number) {
  if (target.pid === undefined) throw new Error(`${target.name} has no process`);
  const bodies = Array.from({ length: count }, () => {
    sent += 1;
    return { id: `delivery-${sent}`, key: `shelf-${sent % 200}`, text: `part ${sent} of the shelf, of which ${sent % 7} are left`, source: 'store' };
  });
  const sign = { header: 'x-webhook-signature', secret: token };
  const load = { url: `${target.url}/hooks/store`, headers: {}, body: undefined, bodies, sign, connections, stream: false };
  const before = cpuUs(target.pid);
  const { good, errors, p50, p99 } = await runHttpLoad({ ...load, requests: count, ms: 60_000 });
  if (good !== count) throw new Error(`${good} of ${count} hooks were taken: ${JSON.stringify(errors)}`);
  return { cpuPerHook: (cpuUs(target.pid) - before) / count, p50, p99 };
}

async function costOfR(r: Target, ms: number): Promise<number> {
  if (r.pid === undefined) throw new Error(`${r.name} has no process`);
  const body = { model: r.model('mock-fast'), messages: [{ role: 'user', content: 'Say something about gateways.' }] };
  const before = cpuUs(r.pid);
  const { good } = await runHttpLoad({ url: `${r.url}/v1/chat/completions`, headers: r.headers, body, connections: 16, ms, stream: false });
  return (cpuUs(r.pid) - before) / good;
}

/** Runs turns of callers that stream for at least this long. */
async function stream(target: Target, count: number, ms: number): Promise<void> {
  const body = { model: target.model('mock-p10'), messages: [{ role: 'user', content: 'Write a story.' }], stream: true };
  const { good, errors } = await runHttpLoad({
    url: `${target.url}/v1/chat/completions`,
    headers: target.headers,
    body,
    connections: count,
    ms,
    stream: true,
  });
  if (good < count || Object.keys(errors).length > 0) throw new Error(`${good} of ${count} turns streamed: ${JSON.stringify(errors)}`);
}

async function untilRunning(target: Target, turns: number): Promise<void> {
  let running = 0;
  for (let tries = 0; tries < 500; tries += 1) {
    const text = await (await fetch(`${target.url}/metrics`, { headers: target.headers })).text();
    running = Number(/^gatehouse_turns\{state="running"\} (\d+)/m.exec(text)?.[1] ?? 0);
    if (running >= turns) return;
    await sleep(10);
  }
  throw new Error(`${running} of ${turns} turns run`);
}
