import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as z from 'zod';
import { root } from './lib/daemon.ts';
import { makeHome, removeHome } from './lib/home.ts';

/**
 * R40: days of jobs, webhooks, chats and heartbeats under a stepped clock, with a server that crashes, stops and starts on its
 * home, a model that fails, and a clock that leaps and goes back. At the end each time of each job has one row and nothing was
 * executed twice; each accepted webhook has had one turn, or says why not; each message is in the inbox once; and no
 * model was called without a reason.
 */
export interface R40Options {
  readonly seeds: readonly number[];
  /** Results of the week of one seed. */
  readonly daysOf: (index: number) => number;
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}

export interface R40Report {
  readonly seeds: number;
  readonly days: number;
  readonly crashes: number;
  readonly stops: number;
  readonly occurrences: number;
  readonly orders: number;
  readonly modelCalls: number;
  readonly unknown: number;
  /** Faults, each with its seed. */
  readonly wrong: readonly string[];
}

const sums = { crashes: z.number(), stops: z.number(), occurrences: z.number(), orders: z.number(), modelCalls: z.number(), unknown: z.number() };
const Said = z.union([
  z.object({ ready: z.literal(true) }),
  z.object({ seed: z.number(), failed: z.string() }),
  z.object({ seed: z.number(), ...sums, wrong: z.array(z.string()) }),
]);
const processes = 2;

export async function proveVirtualWeek({ seeds, daysOf, broken, progress }: R40Options): Promise<R40Report> {
  const cache = await makeHome();
  const total = { crashes: 0, stops: 0, occurrences: 0, orders: 0, modelCalls: 0, unknown: 0 };
  const wrong: string[] = [];
  const children: ChildProcess[] = [];
  let [next, lived, days] = [0, 0, 0];

  async function work(child: ChildProcess): Promise<void> {
    while (next < seeds.length) {
      const index = next;
      next += 1;
      const seed = seeds[index] ?? 0;
      const answer = Promise.race([
        once(child, 'message'),
        once(child, 'exit').then(([code]) => [{ seed, failed: `the process ended with ${code}` }]),
      ]);
      child.send({ seed, days: daysOf(index) });
      const said = Said.parse((await answer)[0]);
      if ('ready' in said) throw new Error('the process started again');
      lived += 1;
      days += daysOf(index);
      if ('failed' in said) {
        wrong.push(`seed ${seed}: ${said.failed}`);
        if (child.exitCode !== null || child.signalCode !== null) return;
      } else {
        for (const key of Object.keys(total) as (keyof typeof total)[]) total[key] += said[key];
        wrong.push(...said.wrong.map((line) => `seed ${seed}: ${line}`));
      }
      if (lived % 10 === 0 || lived === seeds.length)
        progress?.(
          `R40 ${lived}/${seeds.length} seeds, ${days} days: ${total.occurrences} occurrences, ${total.crashes} crashes, wrong ${wrong.length}`,
        );
    }
  }

  try {
    for (let index = 0; index < Math.min(processes, seeds.length); index += 1) {
      const child = fork(join(import.meta.dirname, 'lib/week-process.ts'), [], {
        env: environmentOf(cache, broken),
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      });
      children.push(child);
      await once(child, 'message');
    }
    await Promise.all(children.map(work));
    return { seeds: lived, days, ...total, wrong };
  } finally {
    for (const child of children) child.kill('SIGKILL');
    await removeHome(cache);
  }
}

function environmentOf(cache: string, broken: string | undefined): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env;
  return {
    PATH,
    HOME,
    // Otherwise each server compiles its storage threads again; tests have a cache that persists. Files in memory: R1 and R3 show syncing.
    ...(isWritable('/dev/shm') && { TMPDIR: '/dev/shm' }),
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? cache,
    ...(broken !== undefined && { NODE_OPTIONS: `--import="${pathToFileURL(join(root, 'proving/broken', `${broken}.ts`)).href}"` }),
  };
}

function isWritable(dir: string): boolean {
  try {
    accessSync(dir, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
