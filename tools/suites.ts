/** The suites of tests: projects of vitest, each a separate process in `npm test`, which starts them in this order. */
export interface Suite {
  readonly name: string;
  readonly include: readonly string[];
  readonly exclude?: readonly string[];
  /** Measures time or memory: starts when all others are done, with this many files at a time. */
  readonly measures?: 1 | 2;
  /** Takes half of the processors, so that another suite can run next to it: its files spend most of their time waiting. */
  readonly half?: true;
  /** Files of one worker share loaded modules: for tests that use the product through its interfaces alone, or start it as a process. */
  readonly shared?: true;
  /** Module whose `setup` runs before the files of the suite, in addition to that of the whole run. */
  readonly setup?: string;
  /** Milliseconds for a test, long enough for a machine that does other work too; one that hangs fails all the same. */
  readonly testTimeout: number;
  /** Run by a proof of `npm run prove` alone. */
  readonly proof?: true;
  /** How often a failed test runs again: for tests that judge a few short samples, which other work of the machine may spoil. */
  readonly retry?: number;
  /** Time that it spends waiting, by cause. */
  readonly waitsFor: string;
}

/** Tests that run whole servers in their own process: loading those takes longer than many of the tests. */
const whole = ['packages/*/src/**/*.rpc.test.ts', 'packages/cli/src/commands/*.test.ts'];

/** Tests that observe their whole process: its memory, processor time, timers, globals or modules as they load. */
const observing = [
  'packages/dashboard/src/data/queries.test.ts',
  'packages/server/src/features/environment/web/pages/fetch-tool.test.ts',
  'packages/server/src/features/unattended/cron/occurrences/wake-gate/wake-gate.test.ts',
  'packages/server/src/features/unattended/durable/durable.test.ts',
  'packages/server/src/gateway/body.test.ts',
  'packages/server/src/gateway/http-rows.test.ts',
  'packages/server/src/llm/openai-chat/stream.test.ts',
  'packages/server/src/transactions/claim-occurrence.test.ts',
  'packages/server/src/wiring/channel-people.test.ts',
  'packages/server/src/transactions/prepare-queries.test.ts',
];

const proofs = (...names: readonly string[]) => names.map((name) => `proving/${name}-*.test.ts`);
/** Proofs that measure milliseconds of a busy daemon: each runs alone. */
const timed = proofs('r19', 'r20', 'r24', 'r32');
/** Proofs of limits of seconds, and of memory; they wait most of the time. */
const paced = proofs('r12', 'r15', 'r16', 'r17');

/** Daemons with faults start from one bundle. */
const setup = 'proving/lib/broken-bundle.ts';

/** What the product may use. The other tests of the benchmark judge slow builds, which other load does not make faster. */
const ratchet = ['bench/ratchet.test.ts'];
/** Slow builds in the longest scenarios of the benchmark. */
const scenarios = ['bench/scenarios.test.ts'];

export const suites: readonly Suite[] = [
  // The longest that uses one processor.
  {
    name: 'e2e',
    include: ['e2e/**/*.test.ts'],
    half: true,
    shared: true,
    testTimeout: 120_000,
    waitsFor: 'starting daemons, pages of a browser, programs of others',
  },
  {
    name: 'rpc',
    include: whole,
    shared: true,
    testTimeout: 60_000,
    waitsFor: 'synced writes, and polls of what happens next',
  },
  { name: 'tools', include: ['tools/**/*.test.ts'], half: true, testTimeout: 240_000, waitsFor: 'builds and type checks of copies of the tree' },
  {
    name: 'unit',
    shared: true,
    include: ['packages/*/src/**/*.test.ts'],
    exclude: [...whole, ...observing],
    testTimeout: 60_000,
    waitsFor: 'synced writes, threads and processes',
  },
  { name: 'isolated', include: observing, half: true, testTimeout: 60_000, waitsFor: 'synced writes and threads' },
  {
    name: 'proving',
    include: ['proving/**/*.test.ts'],
    exclude: [...timed, ...paced],
    setup,
    shared: true,
    testTimeout: 240_000,
    waitsFor: 'starting and killed daemons',
  },
  {
    name: 'rig',
    include: ['bench/**/*.test.ts'],
    exclude: [...ratchet, ...scenarios],
    half: true,
    testTimeout: 60_000,
    retry: 1,
    waitsFor: 'samples of servers under load, most of them of slow builds',
  },
  {
    name: 'scenarios',
    include: scenarios,
    proof: true,
    measures: 1,
    testTimeout: 60_000,
    retry: 1,
    waitsFor: 'samples of slow builds under load',
  },
  {
    name: 'paced',
    include: paced,
    setup,
    measures: 2,
    testTimeout: 240_000,
    waitsFor: 'the limits in seconds that the product promises',
  },
  {
    name: 'timed',
    include: timed,
    setup,
    measures: 1,
    testTimeout: 240_000,
    waitsFor: 'answers of a daemon under load',
  },
  {
    name: 'bench',
    include: ratchet,
    measures: 1,
    testTimeout: 60_000,
    retry: 1,
    waitsFor: 'samples of the product under load',
  },
];

/** Returns how many test files of a suite run at the same time. */
export function workersOf({ measures, half }: Suite, processors: number): number {
  if (measures !== undefined) return measures;
  return half ? Math.max(1, Math.floor(processors / 2)) : processors;
}
