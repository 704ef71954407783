import { setTimeout as sleep } from 'node:timers/promises';
import { runHttpLoad } from '../lib/client.ts';
import { startHolder, type Holder } from '../lib/holder.ts';
import type { Measures } from '../lib/measures.ts';
import { cpuUs, rssMb, type Running } from '../lib/proc.ts';
import { callRpc } from '../lib/rpc.ts';
import { product, type Product, type ProductOptions, type Startable, type Target, type Upstream } from '../lib/targets.ts';
import { openingRequest } from './held.ts';

/** Cost of a home with many agents and jobs, by round. */
export interface ScheduleFigures {
  readonly startMs: number[];
  readonly floorMs: number[];
  readonly idle: { readonly cpuShare: number; readonly rssMb: number; readonly beats: number }[];
  /** CPU of an occurrence with few and with many jobs that are not due, microseconds. */
  readonly ticks: { readonly few: number; readonly many: number; readonly occurrences: number }[];
}

export interface ScheduleOptions {
  readonly upstream: Upstream;
  readonly floor: Startable;
  readonly agents: number;
  /** Jobs that are not due, here and in the home that it is compared with. */
  readonly jobs: number;
  readonly few: number;
  readonly starts: number;
  readonly idles: number;
  readonly idleMs: number;
  readonly ticks: number;
  readonly tickMs: number;
  readonly settleMs: number;
  /** Options of the home with many jobs. */
  readonly product?: ProductOptions;
}

/** Every fifth agent beats, as often as allowed; its checklist has a heading and nothing to do. */
const beats = (n: number): boolean => n % 5 === 0;
const beatMs = 60_000;
/** Jobs that fire, each every two seconds, all at different times: some fifty occurrences a second. */
const firing = 100;
const firingMs = 2_000;

/** Start, rest and tick of a daemon with hundreds of agents and thousands of jobs, nearly all of them idle. */
export async function runSchedule(options: ScheduleOptions, measures: Measures): Promise<ScheduleFigures> {
  const many = await scheduled(options, options.jobs, options.product);
  try {
    const figures: ScheduleFigures = { startMs: [], floorMs: [], idle: [], ticks: [] };
    await measureStart(many, options, figures);
    await measureIdle(many, options, figures);
    if (options.ticks > 0) {
      const few = await scheduled(options, options.few);
      try {
        await measureTicks({ many, few }, options, figures);
      } finally {
        few.dispose();
      }
    }
    // Three times the floor is what G9 allows a daemon with one agent.
    measures.add('schedule start beyond', ...figures.startMs.map((ms, round) => ms - 3 * (figures.floorMs[round] ?? NaN)));
    measures.add('schedule idle cpu', ...figures.idle.map(({ cpuShare }) => cpuShare * 100));
    measures.add('schedule idle rss', ...figures.idle.map((one) => one.rssMb));
    measures.add('schedule tick many/few', ...figures.ticks.map((one) => one.many / one.few));
    return figures;
  } finally {
    many.dispose();
  }
}

/** Creates a home with `jobs` jobs that are not due for weeks, added through the API. */
async function scheduled({ upstream, agents }: ScheduleOptions, jobs: number, more: ProductOptions = {}): Promise<Product> {
  const names = Array.from({ length: agents }, (_, n) => `agent-${n}`);
  const subject = await product(upstream.url, {
    agents: Object.fromEntries(
      names.map((name, n) => [name, { model: 'mock/mock-fast', ...(beats(n) && { heartbeat: { enabled: true, intervalMs: beatMs } }) }]),
    ),
    files: Object.fromEntries(names.flatMap((name, n) => (beats(n) ? [[`workspaces/${name}/HEARTBEAT.md`, '# Checklist\n']] : []))),
    // The built-in nightly jobs must not run meanwhile.
    sections: { scheduler: { cron: { maxJobs: 10_000, defaultTimezone: new Date().getUTCHours() < 12 ? 'Etc/GMT-12' : 'UTC' } } },
    ...more,
  });
  if (subject === undefined) throw new Error('the product is not built');
  const month = ((new Date().getUTCMonth() + 6) % 12) + 1;
  const running = await subject.start();
  try {
    const target = subject.target(running);
    await addJobs(
      target,
      Array.from({ length: jobs }, (_, n) => ({
        name: `report ${n}`,
        agentId: names[n % agents],
        schedule:
          n % 2 === 0
            ? { kind: 'cron', expr: `${n % 60} ${n % 24} ${1 + (n % 28)} ${month} *`, tz: 'Europe/Berlin' }
            : { kind: 'every', everyMs: 30 * 86_400_000 },
        payload: { kind: 'agent_turn', message: `What is due of report ${n}, and who waits for it?` },
      })),
    );
  } finally {
    await running.stop();
  }
  return subject;
}

async function addJobs(target: Target, jobs: readonly object[]): Promise<void> {
  const before = await countJobs(target);
  const bodies = jobs.map((params, id) => ({ jsonrpc: '2.0', id, method: 'cron.add', params }));
  const load = { url: `${target.url}/rpc`, headers: target.headers, body: undefined, bodies, connections: 16, stream: false };
  const { good, errors } = await runHttpLoad({ ...load, requests: jobs.length, ms: 120_000 });
  if (good !== jobs.length) throw new Error(`${good} of ${jobs.length} calls of cron.add were answered: ${JSON.stringify(errors)}`);
  const added = (await countJobs(target)) - before;
  if (added !== jobs.length) throw new Error(`${added} of ${jobs.length} jobs were added`);
}

async function countJobs(target: Target): Promise<number> {
  const { total } = await callRpc(target, 'cron.list', { limit: 1 });
  return Number(total);
}

/** Alternates floor and product, as the part `start` does; the first round fills caches. */
async function measureStart(many: Product, { floor, starts }: ScheduleOptions, figures: ScheduleFigures): Promise<void> {
  for (let round = -1; round < starts; round += 1) {
    for (const [server, times] of [[floor, figures.floorMs] as const, [many, figures.startMs] as const]) {
      const running = await server.start();
      await sleep(round < 0 ? 1500 : 100);
      await running.stop();
      if (round >= 0) times.push(running.startMs);
    }
  }
}

/** Measures without calls; a few beats run and find nothing. */
async function measureIdle(many: Product, { upstream, idles, idleMs, settleMs }: ScheduleOptions, figures: ScheduleFigures): Promise<void> {
  for (let round = 0; round < idles; round += 1) {
    const running = await many.start();
    const holder = startHolder();
    try {
      await listen(holder, many.target(running), 'scheduler:heartbeat_wake_terminal');
      await sleep(settleMs);
      const rss = rssMb(running.pid);
      const served = await upstream.served();
      const [beatsBefore, before, from] = [await holder.state(), cpuUs(running.pid), performance.now()];
      await sleep(idleMs);
      const cpuShare = (cpuUs(running.pid) - before) / 1000 / (performance.now() - from);
      const [beatsAfter, calls] = [await holder.state(), (await upstream.served()) - served - 1];
      if (calls > 0) throw new Error(`${calls} models were called by a daemon that has nothing to do`);
      figures.idle.push({ cpuShare, rssMb: rss, beats: beatsAfter.marks - beatsBefore.marks });
    } finally {
      await holder.stop();
      await running.stop();
    }
  }
}

/** Lets both fire the same jobs in the same seconds. */
async function measureTicks(
  homes: { readonly many: Product; readonly few: Product },
  { ticks, tickMs, settleMs }: ScheduleOptions,
  figures: ScheduleFigures,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const up = async (subject: Product): Promise<{ readonly running: Running; readonly holder: Holder }> => {
    const running = await subject.start();
    stack.defer(running.stop);
    const holder = startHolder();
    stack.defer(holder.stop);
    const target = subject.target(running);
    const anchorMs = Date.now() + firingMs;
    await addJobs(
      target,
      Array.from({ length: firing }, (_, n) => ({
        name: `tick ${n}`,
        // Agents without heartbeats, so that only the tick runs.
        agentId: 'agent-1',
        schedule: { kind: 'every', everyMs: firingMs, anchorMs: anchorMs + Math.round((n * firingMs) / firing) },
        payload: { kind: 'heartbeat_event', text: 'The clock struck.' },
      })),
    );
    await listen(holder, target, 'scheduler:cron_execution_terminal');
    return { running, holder };
  };
  const few = await up(homes.few);
  const many = await up(homes.many);
  await sleep(settleMs + firingMs);
  const look = async ({ running, holder }: typeof few) => ({ marks: (await holder.state()).marks, cpu: cpuUs(running.pid) });
  for (let round = 0; round < ticks; round += 1) {
    const before = [await look(few), await look(many)] as const;
    await sleep(tickMs);
    const after = [await look(few), await look(many)] as const;
    const fired = [after[0].marks - before[0].marks, after[1].marks - before[1].marks] as const;
    const expected = (tickMs / firingMs) * firing;
    if (Math.min(...fired) < expected / 2) throw new Error(`${fired.join(' and ')} of ${expected} occurrences ended`);
    figures.ticks.push({
      few: (after[0].cpu - before[0].cpu) / fired[0],
      many: (after[1].cpu - before[1].cpu) / fired[1],
      occurrences: fired[1],
    });
  }
}

async function listen(holder: Holder, target: Target, kind: string): Promise<void> {
  const { open } = await holder.hold({ url: target.url, request: openingRequest('sse', target, `?kinds=${kind}`), count: 1, mark: `event: ${kind}` });
  if (open !== 1) throw new Error(`the events ${kind} cannot be listened to`);
}
