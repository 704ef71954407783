import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { makeScheduleCases, oddZones, type ScheduleCase } from '../packages/testkit/src/schedule-cases.ts';
import { type Daemon, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { proofConfig } from './lib/provider.ts';
import { randomFrom } from './lib/random.ts';
import { inParallel } from './lib/raw.ts';
import { openSocket, type RpcSocket } from './lib/rpc.ts';

/**
 * R9: the next times that the daemon computes for schedules in odd zones, around changes of the clock, leap days and ends of months, and for a
 * scheduler whose clock goes back and forward. An oracle that tries every minute agrees, and no time comes twice.
 */
export interface R9Report {
  readonly cases: number;
  readonly zones: number;
  /** Compared times. */
  readonly times: number;
  /** Cases that end in a refusal, by its code. */
  readonly refused: Readonly<Record<string, number>>;
  /** Clocks that were stepped, and times that came meanwhile. */
  readonly stepped: { readonly clocks: number; readonly times: number };
  readonly wrong: readonly string[];
}

const Preview = z.looseObject({ timesMs: z.array(z.number()) });
const hourMs = 3_600_000;
const batch = 200;

export async function proveClock(options: {
  readonly cases: number;
  readonly clocks: number;
  readonly seed: number;
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}): Promise<R9Report> {
  const random = randomFrom(options.seed);
  const home = await makeHome();
  const port = await freePort();
  await writeConfig(home, proofConfig('http://127.0.0.1:9/v1'));
  let daemon: Daemon | undefined;
  try {
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    const socket = await openSocket({ port, token: daemon.token });
    const harness = new Harness(socket);
    const source = makeScheduleCases(random.int);
    const zones = new Set<string>();
    for (let done = 0; done < options.cases; done += batch) {
      const cases = Array.from({ length: Math.min(batch, options.cases - done) }, () => source.next().value);
      for (const { request } of cases) if ('tz' in request && request.tz !== undefined) zones.add(request.tz);
      await inParallel(cases, 16, (one) => harness.compare(one));
      if ((done / batch) % 20 === 0) options.progress?.(`  ${done + cases.length} of ${options.cases} cases`);
    }
    const clocks = Array.from({ length: options.clocks }, () => ({
      zone: oddZones[random.int(oddZones.length)] ?? 'UTC',
      expr: ['*/10 * * * *', '0,30 1-3 * * *', '15 2 * * *', '*/7 2 * * *'][random.int(4)] ?? '* * * * *',
      startMs: Date.UTC(2010 + random.int(25), random.int(12), 1 + random.int(31), random.int(24)),
      steps: Array.from({ length: 12 }, () => [10 * 60_000, hourMs, 3 * hourMs, -2 * hourMs, 3 * 24 * hourMs][random.int(5)] ?? 0),
    }));
    await inParallel(clocks, 8, (clock) => harness.step(clock));
    socket.close();
    const { times, refused, stepped, wrong } = harness;
    return { cases: options.cases, zones: zones.size, times, refused, stepped: { clocks: clocks.length, times: stepped }, wrong };
  } finally {
    await daemon?.kill();
    await removeHome(home);
  }
}

class Harness {
  times = 0;
  stepped = 0;
  readonly refused: Record<string, number> = {};
  readonly wrong: string[] = [];
  readonly #socket: RpcSocket;

  constructor(socket: RpcSocket) {
    this.#socket = socket;
  }

  async compare({ request, nowMs, expected }: ScheduleCase): Promise<void> {
    const computed = await this.#ask(request, nowMs, typeof expected === 'string' ? 1 : expected.length);
    if (typeof expected === 'string') this.refused[expected] = (this.refused[expected] ?? 0) + 1;
    else this.times += expected.length;
    if (
      typeof expected === 'string'
        ? typeof computed !== 'string' || !computed.includes(expected)
        : JSON.stringify(computed) !== JSON.stringify(expected)
    )
      this.wrong.push(`${JSON.stringify(request)} after ${isoOf(nowMs)}: computed ${textOf(computed)}, expected ${textOf(expected)}`);
  }

  /** A scheduler that asks for the times after the latest one that it has had, whatever its clock says. */
  async step(clock: { readonly zone: string; readonly expr: string; readonly startMs: number; readonly steps: readonly number[] }): Promise<void> {
    const schedule = { kind: 'cron', expr: clock.expr, tz: clock.zone };
    const name = `${clock.expr} ${clock.zone} from ${isoOf(clock.startMs)}`;
    let clockMs = clock.startMs;
    let latestMs = clock.startMs;
    for (const step of clock.steps) {
      clockMs += step;
      if (clockMs <= latestMs) continue;
      const computed = await this.#ask(schedule, latestMs, 50);
      if (typeof computed === 'string') {
        this.wrong.push(`${name}: ${computed}`);
        return;
      }
      for (const time of computed.filter((one) => one <= clockMs)) {
        this.stepped += 1;
        if (time <= latestMs) this.wrong.push(`${name}: ${isoOf(time)} comes again`);
        latestMs = time;
      }
    }
  }

  /** Returns the times, or the text of the refusal. */
  async #ask(schedule: object, fromMs: number, count: number): Promise<readonly number[] | string> {
    this.#id += 1;
    const id = `r9-${this.#id}`;
    const reply = await this.#socket.send({ jsonrpc: '2.0', id, method: 'cron.preview', params: { schedule, fromMs, count } });
    if (reply.error !== undefined) return JSON.stringify(reply.error);
    return Preview.parse(reply.result).timesMs;
  }
  #id = 0;
}

const isoOf = (epochMs: number): string => new Date(epochMs).toISOString();
const textOf = (times: readonly number[] | string): string => (typeof times === 'string' ? times.slice(0, 200) : times.map(isoOf).join(' '));
