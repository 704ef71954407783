import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beginNode } from '../packages/server/src/features/operations/nodes/store.ts';
import { Client } from 'pg';
import { root } from './lib/daemon.ts';
import { atMs, liveBoot, namesOf, otherBoot } from './lib/hammer/driver.ts';
import { drivers } from './lib/hammer/drivers.ts';
import { lookAt, openAt } from './lib/hammer/engine.ts';
import { endLeft } from './lib/hammer/work.ts';
import { makeHome, removeHome } from './lib/home.ts';
import { openPostgresDatabase } from './lib/shared-postgres.ts';

/** Every write operation, run by two processes at the same time against the same rows. */
export interface HammerReport {
  readonly rounds: number;
  /** Operations that ran. */
  readonly driven: readonly string[];
  readonly wrong: readonly string[];
}

interface Answer {
  readonly result: unknown;
  readonly wrong: readonly string[];
  readonly driven: readonly string[];
}

export async function proveHammer(options: {
  readonly engine: 'postgres' | 'sqlite';
  readonly rounds: number;
  readonly seed: number;
  readonly broken?: string;
  readonly only?: readonly string[];
  readonly progress?: (line: string) => void;
  /** Ends the run at the first finding. */
  readonly untilFound?: boolean;
}): Promise<HammerReport> {
  const home = await makeHome();
  await using database = options.engine === 'postgres' ? await openPostgresDatabase(home) : undefined;
  if (database !== undefined) await findDeadlocksSoon(database.url);
  const place = database?.url ?? home;
  const driven = new Set<string>();
  const wrong: string[] = [];
  const children: ChildProcess[] = [];
  const db = await openAt(place);
  const { look, close } = await lookAt(place);
  const faults = options.broken === undefined ? [] : ['--import', pathToFileURL(join(root, 'proving/broken', `${options.broken}.ts`)).href];
  let rounds = 0;
  try {
    const node = {
      bootId: liveBoot,
      homeId: 'home-live',
      version: '1',
      role: 'active' as const,
      leaseMs: atMs,
      isSole: 0 as const,
      prunedBeforeMs: 0,
      atMs,
    };
    await db.write(beginNode, node);
    await db.write(beginNode, { ...node, bootId: otherBoot, homeId: 'home-other' });
    for (const side of [0, 1])
      children.push(
        fork(join(import.meta.dirname, 'lib/hammer/process.ts'), [place, String(side), String(options.seed)], {
          execArgv: faults,
          serialization: 'advanced',
          stdio: ['ignore', 'ignore', options.broken === undefined ? 'inherit' : 'ignore', 'ipc'],
        }),
      );
    await Promise.all(children.map(messageOf));
    const own = { write: async <I, O>(operation: Parameters<typeof db.write<I, O>>[0], input: I) => ({ value: await db.write(operation, input) }) };
    const isFound = () => options.untilFound === true && wrong.length > 0;
    for (let round = 0; round < options.rounds && !isFound(); round += 1) {
      for (const [index, made] of drivers.entries()) {
        if (options.only?.includes(made.name) === false || isFound()) continue;
        const startedAt = performance.now();
        const scene = await made.prepare(db, namesOf(`${made.name.replaceAll(' ', '-')}-${round}`));
        const answers = await Promise.all(
          children.map(async (child) => {
            const said = messageOf(child);
            child.send({ driver: index, scene });
            return (await said) as Answer;
          }),
        );
        const [first, second] = answers;
        if (first === undefined || second === undefined) throw new Error('a process gave no answer');
        for (const answer of answers) {
          for (const name of answer.driven) driven.add(name);
          wrong.push(...answer.wrong.map((line) => `${made.name}: ${line}`));
        }
        if (first.result !== undefined && second.result !== undefined)
          wrong.push(...(await made.check(look, scene, [first.result as never, second.result as never])).map((line) => `${made.name}: ${line}`));
        await endLeft(own);
        options.progress?.(`${made.name}: ${Math.round(performance.now() - startedAt)} ms`);
      }
      rounds += 1;
    }
    return { rounds, driven: [...driven].toSorted(), wrong };
  } finally {
    for (const child of children) child.kill('SIGKILL');
    await close();
    await db[Symbol.asyncDispose]();
    await removeHome(home);
  }
}

/** Both processes lock the same rows in other orders on purpose: the usual second until a deadlock is looked for would be most of the run. */
async function findDeadlocksSoon(url: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET deadlock_timeout = '20ms'`);
  await client.end();
}

/** Returns the next message of a process, which must not end before it. */
async function messageOf(child: ChildProcess): Promise<unknown> {
  const over = new AbortController();
  const { signal } = over;
  try {
    const [message] = await Promise.race([
      once(child, 'message', { signal }),
      once(child, 'exit', { signal }).then(([code]) => {
        throw new Error(`a process of the hammer ended (${String(code)})`);
      }),
    ]);
    return message;
  } finally {
    over.abort();
  }
}
