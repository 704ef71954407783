import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as z from 'zod';
import { addJob, type JobRow } from '../packages/server/src/features/unattended/cron/store.ts';
import { openInlineDb } from '../packages/server/src/kernel/db/sqlite/inline.ts';
import { migrations, operations } from '../packages/server/src/transactions/registry.ts';
import { root } from './lib/daemon.ts';
import { makeHome, removeHome } from './lib/home.ts';
import { randomFrom } from './lib/random.ts';

/** R7: of processes that claim the same occurrences, and pause past their leases, each occurrence is executed by one, once. */
export interface R7Report {
  readonly occurrences: number;
  readonly executed: number;
  /** How often a process was paused while it worked. */
  readonly stops: number;
  readonly wrong: readonly string[];
}

const processes = 4;
const everyMs = 120_000;
const startMs = Date.UTC(2026, 8, 21, 12);
const Said = z.looseObject({
  executed: z.array(z.strictObject({ jobId: z.string(), scheduledForMs: z.int() })).optional(),
  error: z.string().optional(),
});

function jobRow(index: number): JobRow {
  return {
    id: `cj_${index}`,
    agentId: 'default',
    name: `job ${index}`,
    source: 'authored',
    principalId: 'token:root',
    tokenId: 'root',
    scheduleJson: JSON.stringify({ kind: 'every', everyMs, anchorMs: startMs }),
    payloadJson: JSON.stringify({ kind: 'agent_turn', message: 'Go' }),
    policiesJson: '{}',
    state: 'scheduled',
    pauseReason: null,
    nextRunAtMs: startMs,
    dueAtMs: startMs,
    highWaterMs: 0,
    errors: 0,
    activeExecutionId: null,
    claimedForMs: null,
    claimedAtMs: null,
    endedAtMs: null,
    revision: 1,
    createdAtMs: startMs,
    authorJson: null,
  };
}

export async function proveClaimedOnce(options: {
  readonly jobs: number;
  readonly ticks: number;
  readonly seed: number;
  readonly broken?: string;
}): Promise<R7Report> {
  const random = randomFrom(options.seed);
  const home = await makeHome();
  const wrong: string[] = [];
  const times = new Map<string, number>();
  const claimers: ChildProcess[] = [];
  let stops = 0;
  try {
    const db = await openInlineDb({ dataDir: home, migrations, operations });
    for (let index = 0; index < options.jobs; index += 1)
      await db.write(addJob, {
        job: jobRow(index),
        seed: 'seed',
        ageNowMs: startMs,
        maxJobs: options.jobs,
        audit: { id: `au_${index}`, atMs: startMs, principalId: '', action: 'cron.add', classification: 'mutate', outcome: 'success', traceId: '' },
      });
    await db[Symbol.asyncDispose]();
    const faults = options.broken === undefined ? [] : ['--import', pathToFileURL(join(root, 'proving/broken', `${options.broken}.ts`)).href];
    for (let index = 0; index < processes; index += 1) {
      const claimer = fork(join(import.meta.dirname, 'lib/cron-claimer.ts'), [home, `claimer-${index}`], {
        execArgv: faults,
        stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      });
      claimers.push(claimer);
      await once(claimer, 'message');
    }
    const ask = async (claimer: ChildProcess, nowMs: number): Promise<void> => {
      const answer = once(claimer, 'message');
      claimer.send(nowMs);
      const { executed = [], error } = Said.parse((await answer)[0]);
      if (error !== undefined) wrong.push(error);
      for (const { jobId, scheduledForMs } of executed) {
        const key = `${jobId} ${scheduledForMs}`;
        times.set(key, (times.get(key) ?? 0) + 1);
      }
    };
    for (let tick = 0; tick < options.ticks; tick += 1) {
      const nowMs = startMs + tick * everyMs;
      const asleep = claimers[random.int(processes)];
      const work = claimers.map((claimer) => ask(claimer, nowMs));
      await new Promise((resolve) => setTimeout(resolve, random.int(31)));
      asleep?.kill('SIGSTOP');
      stops += 1;
      // The others continue, past its leases; no process holds a lock of the database for long.
      // The others continue meanwhile; when it sleeps with the database locked, they wait for it.
      await Promise.race([Promise.all(work.filter((_, index) => claimers[index] !== asleep)), new Promise((resolve) => setTimeout(resolve, 500))]);
      // Past its leases, so that they take over before it wakes up.
      const awake = claimers.filter((claimer) => claimer !== asleep);
      const taking = Promise.all(work.filter((_, index) => claimers[index] !== asleep)).then(() =>
        Promise.all(awake.map((claimer) => ask(claimer, nowMs + 70_000))),
      );
      await Promise.race([taking, new Promise((resolve) => setTimeout(resolve, 500))]);
      asleep?.kill('SIGCONT');
      await Promise.all([...work, taking]);
      // Occurrences that it had claimed and did not execute in time are taken over.
      await Promise.all(claimers.map((claimer) => ask(claimer, nowMs + 90_000)));
    }
    const expected = options.jobs * options.ticks;
    for (const [key, count] of times) if (count !== 1) wrong.push(`${key} was executed ${count} times`);
    if (times.size !== expected) wrong.push(`${times.size} of ${expected} occurrences were executed`);
    return { occurrences: expected, executed: [...times.values()].reduce((sum, count) => sum + count, 0), stops, wrong };
  } finally {
    for (const claimer of claimers) claimer.kill('SIGKILL');
    await removeHome(home);
  }
}
