import { createHmac } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bellsOf } from './bells.ts';
import { pause } from './daemon.ts';
import { http } from './http.ts';
import { answerTo, nonceOf } from './provider.ts';
import { type Random, randomFrom } from './random.ts';
import { checkWeek } from './week-checks.ts';
import { createLife, type Life } from './week-life.ts';
import { createWorld, happenings, idleModel, words, type World } from './week-world.ts';

/** A request to the server, and whether it was acknowledged. */
export interface Order {
  readonly kind: 'hook' | 'wake' | 'chat' | 'once';
  readonly nonce: string;
  /** Whether the turn of a hook charges. */
  readonly charges: boolean;
  /** Time of the request. */
  readonly atMs: number;
  acked: boolean;
}

/** A recurring job, and its times. */
export interface WeekJob {
  readonly name: string;
  /** The charge of its turn, if any. */
  readonly charges?: string;
  isTime(ms: number): boolean;
  /** All its times up to this one. */
  times(untilMs: number): number[];
}

export interface WeekRecord {
  readonly world: World;
  readonly orders: readonly Order[];
  readonly jobs: readonly WeekJob[];
  /** Manual executions that were promised. */
  readonly byHand: readonly string[];
  readonly endMs: number;
}

export interface WeekReport {
  readonly seed: number;
  readonly crashes: number;
  readonly stops: number;
  readonly occurrences: number;
  readonly orders: number;
  readonly modelCalls: number;
  readonly unknown: number;
  readonly wrong: readonly string[];
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const beginMs = Date.UTC(2026, 8, 21);
const hookSecret = 'secret-of-the-webhooks-of-the-proving-suite';
/** Checks for due work at which nothing hangs any more. */
const patience = 5_000;
/** Three crashes within five minutes would rightly stop the agents. */
const apartMs = 3 * minuteMs;

const config = {
  gateway: { drainTimeoutMs: 1_000 },
  agents: {
    default: {
      model: 'mock/mock-fast',
      tools: { allow: ['charge'] },
      originTools: { webhook: ['charge'] },
      circuitBreaker: { failures: 1_000 },
      memory: { recall: { enabled: false } },
    },
    keeper: { model: 'mock/mock-fast', circuitBreaker: { failures: 1_000 }, heartbeat: { enabled: true, intervalMs: 6 * hourMs } },
    idler: { model: `mock/${idleModel}`, heartbeat: { enabled: true, intervalMs: hourMs } },
  },
  scheduler: {
    cron: { maxConsecutiveDependencyErrors: 0, builtIn: { memoryLifecycle: { enabled: false } } },
    heartbeat: { prompt: words.beat, alertThreshold: 100 },
  },
  webhooks: {
    token: hookSecret,
    mappings: [
      { id: 'turn', match: { path: 'turn' }, sessionKey: '{{key}}', messageTemplate: '{{text}}' },
      { id: 'wake', match: { path: 'wake' }, action: 'wake' as const, agentId: 'keeper', messageTemplate: '{{text}}' },
    ],
  },
};

/** Runs seven days, or fewer, of jobs, webhooks, chats and heartbeats, with faults of everything in between; then a quiet evening, and checks the result. */
export async function liveWeek(seed: number, days: number): Promise<WeekReport> {
  const random = randomFrom(seed);
  const world = createWorld(randomFrom(seed ^ 0x5eed), random.int(3) === 0 ? 0 : random.next() * 0.15);
  const life = await createLife(world, config, async (home) => {
    const workspace = join(home, 'workspaces/keeper');
    await mkdir(workspace, { recursive: true });
    await writeFile(join(workspace, 'HEARTBEAT.md'), `# Checklist\n\n${words.checklist}\n`);
  });
  const orders: Order[] = [];
  const byHand: string[] = [];
  const counts = { crashes: 0, stops: 0 };
  let furthestMs = beginMs;
  try {
    await life.start(beginMs);
    const jobs = await addJobs(life, random);
    const endMs = beginMs + days * dayMs;
    let halfMs = beginMs + (days * dayMs) / 2;
    const pending = new Set<Promise<unknown>>();
    while (life.clock().now() < endMs) {
      const isHalf = life.clock().now() > halfMs;
      const roll = isHalf ? 0 : random.next();
      if (roll < 0.08) {
        // In the middle of work: a job has just become due.
        const some = isHalf || random.int(3) > 0 ? jobs.filter(({ charges }) => charges !== undefined) : jobs;
        const [due] = nextTimes(some, life.clock().now(), life.clock().now() + dayMs);
        life.clock().leap((due ?? 0) - life.clock().now());
      } else if (roll < 0.12) life.clock().leap(hourMs * random.int(9));
      else await pass(life, jobs, minuteMs * (5 + random.int(145)));
      furthestMs = Math.max(furthestMs, life.clock().now());
      for (const work of act(life, random, orders, byHand)) {
        pending.add(work);
        void work.finally(() => pending.delete(work));
      }
      // Once in each life while something runs that must not run twice.
      if (isHalf) await Promise.race([world.next('charged'), pause(5_000)]);
      else if (roll < 0.08) {
        await Promise.race([world.next(happenings[random.int(happenings.length)] ?? 'asked'), pause(300)]);
        await pause(random.int(4));
      } else await life.settle();
      if (isHalf) halfMs = Infinity;
      if (roll < 0.08) {
        await life.crash();
        counts.crashes += 1;
      } else if (roll > 0.985) {
        await life.stop();
        counts.stops += 1;
      } else continue;
      await Promise.all(pending);
      // Once for so long that most jobs miss a time.
      await life.start(isHalf ? life.clock().now() + 9 * hourMs : restartAt(life.clock().now(), furthestMs, random));
    }
    await Promise.all(pending);
    // The quiet evening: requests that were refused for the moment are repeated.
    world.calm();
    for (const untilMs = Math.max(furthestMs, life.clock().now()) + 4 * hourMs; life.clock().now() < untilMs;) {
      await pass(life, jobs, 20 * minuteMs, patience);
      await life.settle(patience);
    }
    const stoppedMs = life.clock().now();
    await life.stop();
    const { occurrences, unknown, wrong } = checkWeek(life.file(), { world, orders, jobs, byHand, endMs: stoppedMs - 30 * minuteMs });
    return { seed, ...counts, occurrences, unknown, orders: orders.length, modelCalls: world.calls(), wrong };
  } finally {
    await life.remove();
  }
}

/** Lets time pass, from one time of a job to the next. */
async function pass(life: Life, jobs: readonly WeekJob[], ms: number, looks?: number): Promise<void> {
  const clock = life.clock();
  const untilMs = clock.now() + ms;
  for (const atMs of nextTimes(jobs, clock.now(), untilMs)) {
    if (atMs <= clock.now()) continue;
    clock.leap(atMs - clock.now());
    await life.settle(looks);
  }
  if (untilMs > clock.now()) clock.leap(untilMs - clock.now());
}

const nextTimes = (jobs: readonly WeekJob[], afterMs: number, untilMs: number): number[] =>
  jobs
    .flatMap((job) => job.times(untilMs))
    .filter((atMs) => atMs > afterMs)
    .toSorted((a, b) => a - b);

/** A little later; or after hours, or after the clock went back. */
function restartAt(nowMs: number, furthestMs: number, random: Random): number {
  const roll = random.next();
  if (roll < 0.4) return nowMs + apartMs + random.int(12 * hourMs);
  // Far enough back for times to repeat, and apart from the last starts.
  if (roll < 0.5 && furthestMs === nowMs) return nowMs - apartMs - random.int(3 * hourMs);
  return nowMs + apartMs;
}

async function addJobs(life: Life, random: Random): Promise<WeekJob[]> {
  const server = life.server();
  const bell = await bellsOf(portOf(life), 'token:root');
  const add = (params: object) => server.client.call('cron.add', params as Parameters<typeof server.client.call<'cron.add'>>[1]);
  const every = (name: string, hours: number, charges?: string): { readonly job: WeekJob; readonly schedule: object } => {
    const [everyMs, anchorMs] = [hours * hourMs, beginMs + (1 + random.int(59)) * minuteMs];
    return {
      schedule: { kind: 'every', everyMs, anchorMs },
      job: {
        name,
        ...(charges !== undefined && { charges }),
        isTime: (ms) => ms >= anchorMs && (ms - anchorMs) % everyMs === 0,
        times: (untilMs) =>
          Array.from({ length: Math.max(0, Math.floor((untilMs - anchorMs) / everyMs) + 1) }, (_, index) => anchorMs + index * everyMs),
      },
    };
  };
  const fifth: WeekJob = {
    name: 'fifth',
    isTime: (ms) => ms % hourMs === 15 * minuteMs && new Date(ms).getUTCHours() % 5 === 0,
    times: (untilMs) =>
      Array.from({ length: Math.ceil((untilMs - beginMs) / hourMs) }, (_, hour) => beginMs + hour * hourMs + 15 * minuteMs).filter(
        (ms) => ms <= untilMs && new Date(ms).getUTCHours() % 5 === 0,
      ),
  };
  const jobs: WeekJob[] = [fifth];
  await add({ ...bell('fifth', { kind: 'cron', expr: '15 */5 * * *', tz: 'UTC' }) });
  const put = async ({ job, schedule }: ReturnType<typeof every>, more: object): Promise<void> => {
    await add({ ...bell(job.name, schedule), ...more });
    jobs.push(job);
  };
  await put(every('bell', 3), {});
  await put(every('rounds', 4, 'rounds'), { payload: { kind: 'agent_turn', message: words.rounds } });
  await put(every('mail', 6), { payload: { kind: 'agent_turn', message: words.read } });
  const script = `console.log(JSON.stringify({ wake: false }))`;
  await put(every('gated', 24), {
    payload: { kind: 'agent_turn', message: words.never },
    wakeGate: { script, language: 'js', timeoutSeconds: 60 },
  });
  return jobs;
}

const portOf = (life: Life) => ({ port: Number(new URL(life.server().url).port), token: life.server().token });

/** Requests of people and machines in this hour. Each promise resolves when it is answered, or cannot be any more. */
function act(life: Life, random: Random, orders: Order[], byHand: string[]): Promise<void>[] {
  const work: Promise<void>[] = [];
  const take = (kind: Order['kind'], charges: boolean, send: (order: Order) => Promise<unknown>): void => {
    const generation = life.generation();
    const order: Order = { kind, nonce: nonceOf([kind, orders.length]), charges, atMs: life.clock().now(), acked: false };
    orders.push(order);
    // An answer of a server that is dead by then has never arrived.
    work.push(
      send(order).then(
        () => void (order.acked ||= generation.alive),
        () => undefined,
      ),
    );
  };
  if (random.next() < 0.3)
    take('hook', random.int(2) === 0, async ({ nonce, charges }) => {
      const text = `${charges ? words.charge : words.note} ${nonce}`;
      // Senders repeat deliveries, also immediately.
      const sends = Array.from({ length: random.int(5) === 0 ? 2 : 1 }, () => sendHook(life, 'turn', nonce, text));
      await Promise.any(sends);
    });
  if (random.next() < 0.12) take('wake', false, ({ nonce }) => sendHook(life, 'wake', nonce, `It rings: ${nonce}`));
  if (random.next() < 0.2)
    take('chat', false, async ({ nonce }) => {
      const { response } = await life
        .server()
        .client.call('agent.execute', { message: `${words.note} ${nonce}`, sessionKey: `chat-${random.int(4)}:desk` });
      if (response !== answerTo(nonce)) throw new Error(`the answer "${response}"`);
    });
  if (random.next() < 0.06)
    take('once', false, async ({ nonce }) => {
      const target = portOf(life);
      const { client } = life.server();
      const bell = await bellsOf(target, 'token:root');
      const seconds = 60 + random.int(14_400);
      await client.call('cron.add', bell(nonce, { kind: 'in', seconds }) as Parameters<typeof client.call<'cron.add'>>[1]);
    });
  if (random.next() < 0.04) {
    const generation = life.generation();
    const running = life.server().client.call('cron.run', { jobName: 'rounds' });
    work.push(
      running.then(
        (result) => void (generation.alive && result.mode === 'force' && byHand.push(result.executionId)),
        () => undefined,
      ),
    );
  }
  return work;
}

async function sendHook(life: Life, path: string, nonce: string, text: string): Promise<void> {
  const body = JSON.stringify({ text, key: nonce });
  const headers = { 'x-webhook-signature': createHmac('sha256', hookSecret).update(body).digest('hex'), 'x-github-delivery': nonce };
  const { status, text: answer } = await http({ port: portOf(life).port, path: `/hooks/${path}`, headers, body });
  if (status !== 200) throw new Error(`HTTP ${status} ${answer.slice(0, 100)}`);
}
