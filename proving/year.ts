import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './lib/daemon.ts';
import { makeHome, removeHome } from './lib/home.ts';
import type { Pace } from './lib/year-day.ts';
import type { YearReport } from './lib/year-life.ts';

/** Old records of a busy household are deleted for a year: the database stays as small as the guide says, queries as fast, and all sums exact. */
export interface YearOptions {
  readonly days: number;
  readonly pace: Pace;
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}

type Said = { readonly ready: true } | { readonly progress: string } | { readonly report: YearReport } | { readonly failed: string };

export async function proveYear({ days, pace, broken, progress }: YearOptions): Promise<YearReport> {
  const home = await makeHome();
  const child = fork(join(import.meta.dirname, 'lib/year-process.ts'), [], {
    env: {
      ...process.env,
      ...(broken !== undefined && { NODE_OPTIONS: `--import="${pathToFileURL(join(root, 'proving/broken', `${broken}.ts`)).href}"` }),
    },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the process ended with ${String(code)}`);
  });
  // Observed by the race below.
  ended.catch(() => {});
  try {
    for (;;) {
      const [said] = (await Promise.race([once(child, 'message'), ended])) as [Said];
      if ('failed' in said) throw new Error(said.failed);
      if ('report' in said) return said.report;
      if ('progress' in said) progress?.(said.progress);
      else child.send({ dataDir: join(home, 'data'), days, pace });
    }
  } finally {
    child.kill('SIGKILL');
    await removeHome(home);
  }
}

/** Days of the sums alone, which are kept for good: bytes of one day for each turn. */
const sumBytesPerTurn = 500;

/** Returns how the database has grown beyond what is kept, since the time from which as much is deleted as is added. */
export function growthOf({ sizes, turns }: YearReport, { turns: perDay }: Pace): string[] {
  const last = sizes.at(-1);
  const steady = sizes.find(({ day }) => day >= 120);
  if (steady === undefined || last === undefined || turns === 0) return [];
  const allowed = steady.mainBytes * 1.1 + (last.day - steady.day) * perDay * sumBytesPerTurn;
  return [
    ...(last.mainBytes > allowed ? [`the database has ${last.mainBytes} bytes, ${steady.mainBytes} on day ${steady.day}`] : []),
    ...(last.telemetryBytes > steady.telemetryBytes * 1.2
      ? [`events and traces have ${last.telemetryBytes} bytes, ${steady.telemetryBytes} on day ${steady.day}`]
      : []),
  ];
}

/** Milliseconds that the 95th of 100 queries may take on millions of calls, and for which the event loop may be held. */
const bounds = { 'billing by provider': 50, 'trace by id': 20 } as const;
const loopBoundMs = 10;

/** Returns the queries that are slower than bounds on millions of calls. */
export function lateOf({ last, loopMs }: YearReport): string[] {
  return [
    ...Object.entries(bounds).flatMap(([name, most]) => ((last[name]?.p95 ?? 0) <= most ? [] : [`${name}: p95 ${last[name]?.p95} ms`])),
    ...(loopMs <= loopBoundMs ? [] : [`the event loop was held for ${loopMs} ms`]),
  ];
}

/** Returns the queries that are slower than in the first week. */
export function slowerOf({ first, last }: YearReport): string[] {
  return Object.entries(last).flatMap(([name, { p50 }]) => {
    // Of the whole time, which was a week then.
    if (name === 'billing by provider') return [];
    const before = first[name]?.p50 ?? 0;
    return p50 <= before * 2 + 1 ? [] : [`${name}: ${p50.toFixed(1)} ms, ${before.toFixed(1)} in the first week`];
  });
}

export const mib = (bytes: number): number => Math.round(bytes / 1_048_576);
