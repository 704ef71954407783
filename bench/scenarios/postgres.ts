import { startPostgres } from '@gatehouse/testkit/postgres';
import type { Measures } from '../lib/measures.ts';
import { product, type Target, type Upstream } from '../lib/targets.ts';
import { measurePostgres } from '../micro/postgres.ts';
import { runCompletions } from './completions.ts';

export interface PostgresOptions {
  readonly upstream: Upstream;
  readonly rounds: number;
  /** Commits of each round. */
  readonly commits: number;
}

/** Compares PostgreSQL with SQLite in one run: commits of turns in bulk form, and the processor time of the daemon for a whole turn. */
export async function runPostgres({ upstream, rounds, commits }: PostgresOptions, measures: Measures): Promise<void> {
  for (const { sqlite, postgres } of await measurePostgres(rounds, commits)) measures.add('postgres commits/sqlite', sqlite.wall / postgres.wall);
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startPostgres({ settings: { fsync: 'on', full_page_writes: 'on', shared_buffers: '128MB' } }));
  const targets: Target[] = [];
  for (const [name, sections] of [
    ['R', {}],
    ['product', { storage: { driver: 'postgres', url: server.url() } }],
  ] as const) {
    const subject = await product(upstream.url, { sections });
    if (subject === undefined) return;
    stack.defer(() => subject.dispose());
    const running = await subject.start();
    stack.defer(running.stop);
    // The scenario knows its targets by these names.
    targets.push({ ...subject.target(running), name });
  }
  const samples = await runCompletions({ upstream, targets, names: ['json16'], rounds, scale: 1 });
  const [sqlite = [], postgres = []] = ['R', 'product'].map((name) => samples.get(name)?.get('json16') ?? []);
  for (const [round, sample] of postgres.entries()) {
    const floor = sqlite[round];
    if (floor !== undefined) measures.add('postgres turn cpu/sqlite', sample.cpuPerAnswer / floor.cpuPerAnswer);
    if (sample.failed > 0) throw new Error(`${sample.failed} turns failed on PostgreSQL`);
  }
}
