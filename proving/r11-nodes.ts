import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Client } from 'pg';
import { root } from './lib/daemon.ts';
import type { Asked, Written } from './lib/stale-node.ts';
import { nodeKinds } from './lib/stale-node-work.ts';

/**
 * R11 with an active node and a standby on one PostgreSQL: a process that is frozen past its lease, and wakes up when the other one has
 * taken over, changes nothing. `node`: the lease of the daemon has ended, and every write must be refused. `work`: without that lease
 * the claim of each work item, and of the boot, must protect what the other process owns by then.
 */
export interface R11NodesReport {
  readonly freezes: number;
  /** Work items by kind. */
  readonly tried: Readonly<Record<string, number>>;
  readonly writes: number;
  readonly wrong: readonly string[];
}

/** Work items of one freeze: each kind. */
const each = nodeKinds.length;
/** Rows that say who is alive. */
const volatile = ['node', 'active_node'];

export async function proveStaleNodes(options: {
  /** URL of an empty database. */
  readonly url: string;
  readonly freezes: Readonly<Record<'node' | 'work', number>>;
  readonly seed: number;
  readonly broken?: readonly string[];
  readonly progress?: (line: string) => void;
}): Promise<R11NodesReport> {
  const { url, freezes, seed, broken = [], progress } = options;
  const faults = broken.flatMap((name) => ['--import', pathToFileURL(join(root, 'proving/broken', `${name}.ts`)).href]);
  const client = new Client({ connectionString: url });
  await client.connect();
  const start = (side: number) =>
    fork(join(import.meta.dirname, 'lib/stale-node.ts'), [url, String(side), String(seed + side)], {
      execArgv: faults,
      stdio: ['ignore', 'ignore', broken.length === 0 ? 'inherit' : 'ignore', 'ipc'],
    });
  const children: ChildProcess[] = [];
  const wrong: string[] = [];
  const tried: Record<string, number> = {};
  let writes = 0;
  try {
    // One after the other: the first one makes the tables.
    const both = [start(0)] as ChildProcess[];
    children.push(...both);
    await answerOf(both[0]);
    children.push(start(1));
    await answerOf(children[1]);
    let [active, standby] = children as [ChildProcess, ChildProcess];
    let n = 0;
    // In this order: a process that has once held the lease of the daemon always needs it.
    for (const mode of ['work', 'node'] as const)
      for (let round = 0; round < freezes[mode]; round += 1, n += each) {
        await ask(standby, { do: 'begin', mode, round });
        await ask(active, { do: 'begin', mode, round });
        await ask(active, { do: 'prepare', from: n, to: n + each });
        active.kill('SIGSTOP');
        // It reads this when it wakes up, before it can learn anything else.
        const first = ask(active, { do: 'write', n }) as Promise<Written>;
        await ask(standby, { do: 'take over', from: n, to: n + each });
        for (let index = n; index < n + each; index += 1) {
          const before = await dump(client);
          if (index === n) active.kill('SIGCONT');
          const written = await (index === n ? first : (ask(active, { do: 'write', n: index }) as Promise<Written>));
          const changed = differences(before, await dump(client));
          const kind = nodeKinds[index % each] ?? '';
          tried[kind] = (tried[kind] ?? 0) + 1;
          writes += written.length;
          if (changed.length > 0) wrong.push(`${mode} ${round}: stale writes about a ${kind} have changed ${changed.join(', ')}`);
          for (const [name, outcome] of written)
            if (mode === 'node' && outcome !== 'refused') wrong.push(`node ${round}: the stale ${name} was not refused: ${outcome}`);
        }
        await ask(standby, { do: 'end', from: n, to: n + each });
        [active, standby] = [standby, active];
        if (round % 10 === 9) progress?.(`R11, ${mode}: ${round + 1} of ${freezes[mode]} freezes, ${wrong.length} wrong`);
      }
    return { freezes: freezes.node + freezes.work, tried, writes, wrong };
  } finally {
    for (const child of children) child.kill('SIGKILL');
    await client.end();
  }
}

async function ask(child: ChildProcess, asked: Asked): Promise<unknown> {
  const answer = answerOf(child);
  child.send(asked);
  return answer;
}

async function answerOf(child: ChildProcess | undefined): Promise<unknown> {
  if (child === undefined) throw new RangeError('there is no such process');
  const over = new AbortController();
  const { signal } = over;
  try {
    const [message] = await Promise.race([
      once(child, 'message', { signal }),
      once(child, 'exit', { signal }).then(([code]) => [{ error: `the process ended (${String(code)})` }]),
    ]);
    const { result, error } = message as { readonly result?: unknown; readonly error?: string };
    if (error !== undefined) throw new Error(error);
    return result;
  } finally {
    over.abort();
  }
}

/** A digest of the rows of each table. */
async function dump(client: Client): Promise<ReadonlyMap<string, string>> {
  const { rows: tables } = await client.query<{ name: string }>(`SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()`);
  const digests = tables
    .filter(({ name }) => !volatile.includes(name))
    .map(({ name }) => `SELECT '${name}' AS name, coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '') AS rows FROM "${name}" t`);
  const { rows } = await client.query<{ name: string; rows: string }>(digests.join(' UNION ALL '));
  return new Map(rows.map(({ name, rows: digest }) => [name, digest]));
}

function differences(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  return [...after].filter(([table, rows]) => before.get(table) !== rows).map(([table]) => table);
}
