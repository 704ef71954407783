import { execFileSync, spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, constants } from 'node:os';
import { join } from 'node:path';
import { moduleGraph } from './module-graph.ts';
import { relatedTests, withinTime } from './related-tests.ts';
import { readReport, reportVariable } from './run-report.ts';
import { type Suite, suites, workersOf } from './suites.ts';
import { openTestFolder } from './test-folder.ts';

/**
 * What `npm test` runs: the checks and every suite, and what each took. A failed check does not keep the tests from running.
 * `npm test -- --changed [REF]` runs the tests that uncommitted changes, or those since REF, touch, for at most two minutes.
 * With other arguments (`npm test -- packages/server/src/runtime`) only the named tests run.
 */
const root = join(import.meta.dirname, '..');
/** `npm test` has built the bundle. */
const env = { ...process.env, GATEHOUSE_TEST_MAIN: join(root, 'dist/main.js') };
const vitest = join('node_modules', 'vitest', 'vitest.mjs');
const cache = join(root, 'node_modules/.cache/test-runs');
/** Time of a whole run with --changed, without its start. */
const changedMs = 75_000;
/** Most test files that run once more after a failure. */
const maxRepeated = 5;
/** Assumed for a test that has never run here. */
const unknownMs = 4_000;

interface Run {
  readonly name: string;
  readonly passed: boolean;
  readonly wallMs: number;
  /** Processor time of it and of all processes that it waited for; undefined on Windows. */
  readonly cpuMs: number | undefined;
}

/** Emits `stop` for each signal that ends this run. */
const stopping = new EventEmitter<{ stop: [NodeJS.Signals] }>();
let stoppedBy: NodeJS.Signals | undefined;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    stoppedBy = signal;
    process.exitCode = 128 + constants.signals[signal];
    stopping.emit('stop', signal);
  });
}

/** Signals a process, or a group as a negative number; one that has ended is left alone. */
function end(pid: number | undefined, signal: NodeJS.Signals): void {
  if (!pid) return;
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Runs a program of this repository and measures it; the shell that starts it knows the processor time of its children. */
async function run(
  name: string,
  parameters: readonly string[],
  output: 'inherit' | 'pipe' = 'inherit',
  variables: NodeJS.ProcessEnv = {},
): Promise<Run> {
  const started = performance.now();
  const hasShell = process.platform !== 'win32';
  const command = [process.execPath, ...parameters];
  const [file = '', ...args] = hasShell ? ['sh', '-c', '"$@"; code=$?; times >&3; exit $code', 'sh', ...command] : command;
  const child = spawn(file, args, {
    cwd: root,
    detached: hasShell,
    stdio: ['ignore', output, output, 'pipe'],
    env: { ...env, ...variables },
  });
  child.stdout?.pipe(process.stdout, { end: false });
  child.stderr?.pipe(process.stderr, { end: false });
  const forward = (signal: NodeJS.Signals): void => end(hasShell ? -(child.pid ?? 0) : child.pid, signal);
  stopping.on('stop', forward);
  let times = '';
  child.stdio[3]?.on('data', (chunk: Buffer) => (times += chunk.toString()));
  const { promise, resolve } = Promise.withResolvers<number | null>();
  child.on('close', resolve);
  const code = await promise;
  stopping.off('stop', forward);
  return { name, passed: code === 0, wallMs: performance.now() - started, cpuMs: cpuOf(times) };
}

/** Reads the second line of `times`: user and system time of the children, each as `1m2.34s`. */
function cpuOf(times: string): number | undefined {
  const parts = [...(times.split('\n')[1] ?? '').matchAll(/(\d+)m([\d.]+)s/g)];
  return parts.length === 0 ? undefined : parts.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60_000 + Number(seconds) * 1_000, 0);
}

const runSuite = (name: string, chosen: readonly string[] = ['--project', name], variables: NodeJS.ProcessEnv = {}): Promise<Run> => {
  const report = reportOf(name);
  // A run that ends before its report must not show an earlier one.
  rmSync(report, { force: true });
  return run(name, [vitest, 'run', ...chosen, '--reporter=default', `--reporter=${join(root, 'tools/run-report.ts')}`], 'pipe', {
    [reportVariable]: report,
    ...variables,
  });
};

const seconds = (ms: number): string => `${(ms / 1000).toFixed(0)} s`.padStart(6);

function printRuns(runs: readonly Run[]): void {
  console.log('\n                  wall     CPU');
  for (const { name, passed, wallMs, cpuMs } of runs) {
    const waitsFor = suites.find((suite) => suite.name === name)?.waitsFor;
    const rest = waitsFor === undefined ? '' : `   waits for ${waitsFor}`;
    console.log(`${passed ? 'ok    ' : 'FAILED'} ${name.padEnd(8)}${seconds(wallMs)}  ${cpuMs === undefined ? '     -' : seconds(cpuMs)}${rest}`);
  }
  for (const { file, ms } of slowestFiles()) console.log(`  ${seconds(ms)}  ${file}`);
}

/** Path of the report of a suite. */
const reportOf = (name: string): string => join(cache, `${name}.json`);

interface Failure {
  /** Path from the root; undefined for an error outside of every file. */
  readonly file?: string;
  readonly lines: readonly string[];
}

/** Returns what failed in a suite. */
function failuresOf(name: string): readonly Failure[] {
  const { files, errors } = readReport(reportOf(name)) ?? { files: [], errors: [] };
  const failed = files.flatMap(({ file, failures: lines }) => (lines.length > 0 ? [{ file, lines }] : []));
  return errors.length > 0 ? [...failed, { lines: errors }] : failed;
}

const printFailures = (title: string, failures: readonly Failure[]): void => {
  for (const { file, lines } of failures) for (const line of lines) console.log(`${title} ${file ?? 'outside of every file'}: ${line}`);
};

/**
 * Runs test files that failed once more, alone, and says which of them failed only once. Many failures have a common
 * cause, and a suite that failed without naming a file did not run to its end: neither is repeated.
 */
async function passesAlone(runs: readonly Run[]): Promise<boolean> {
  const failures = runs.filter(({ passed }) => !passed).map(({ name }) => failuresOf(name));
  const first = failures.flat();
  const files = first.flatMap(({ file }) => file ?? []);
  if (first.length > maxRepeated || files.length < first.length || failures.some((ofSuite) => ofSuite.length === 0)) {
    printFailures('FAILED', first);
    return false;
  }
  const again = await runSuite('again', [...files, '--no-file-parallelism']);
  const second = failuresOf('again');
  const twice = new Set(second.map(({ file }) => file));
  // A run that fails without naming a file did not show that any of them passes.
  const isFailed = ({ file }: Failure): boolean => !again.passed && (twice.size === 0 || twice.has(undefined) || twice.has(file));
  printRuns([...runs, again]);
  printFailures(
    'FAILED ONCE',
    first.filter((one) => !isFailed(one)),
  );
  printFailures('FAILED', second.length > 0 ? second : first.filter(isFailed));
  return again.passed;
}

/** Returns how long each file took when its suite was last run as a whole. */
function knownDurations(): ReadonlyMap<string, number> {
  return new Map(suites.flatMap(({ name }) => readReport(reportOf(name))?.files.map(({ file, ms }) => [file, ms] as const) ?? []));
}

function slowestFiles(): readonly { readonly file: string; readonly ms: number }[] {
  return [...knownDurations()]
    .map(([file, ms]) => ({ file, ms }))
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, 10);
}

interface Job {
  /** Number of processors that it keeps busy at most. */
  readonly takes: number;
  readonly start: () => Promise<Run>;
}

/** Runs jobs in their order, each as soon as the processors for it are free; of those there is one more than in the machine, as no test works all the time. */
async function runJobs(jobs: readonly Job[], processors: number): Promise<readonly Run[]> {
  const waiting = [...jobs];
  const runs: Run[] = [];
  const running = new Set<Promise<void>>();
  let free = processors + 1;
  while (stoppedBy === undefined && (waiting.length > 0 || running.size > 0)) {
    const next = waiting.findIndex(({ takes }) => takes <= free);
    const [job] = next === -1 ? [] : waiting.splice(next, 1);
    if (job === undefined) {
      await Promise.race(running);
      continue;
    }
    free -= job.takes;
    const ended: Promise<void> = job.start().then((outcome) => {
      runs.push(outcome);
      running.delete(ended);
      free += job.takes;
    });
    running.add(ended);
  }
  await Promise.all(running);
  return runs;
}

async function runAll(): Promise<boolean> {
  const started = performance.now();
  const processors = availableParallelism();
  const toJob = (suite: Suite, variables: NodeJS.ProcessEnv = {}): Job => ({
    takes: workersOf(suite, processors),
    start: () => runSuite(suite.name, undefined, variables),
  });
  const chosen = suites.filter(({ proof }) => proof === undefined);
  const checks: Job = { takes: 1, start: () => run('checks', [join('tools', 'check.ts')], 'pipe') };
  const unmeasured = chosen.filter(({ measures }) => measures === undefined);
  // Those that measure use the disk, as the product does, and run one after the other: they would disturb each other.
  const measured = chosen.filter(({ measures }) => measures !== undefined).map((suite) => ({ ...toJob(suite), takes: processors + 1 }));
  using folder = openTestFolder();
  const runs = [
    ...(await runJobs([checks, ...unmeasured.map((suite) => toJob(suite, { TMPDIR: folder.path }))], processors)),
    ...(await runJobs(measured, processors)),
  ];
  printRuns(runs);
  const passed = runs.every((one) => one.passed) || (stoppedBy === undefined && (await passesAlone(runs)));
  const cpuMs = runs.reduce((sum, one) => sum + (one.cpuMs ?? 0), 0);
  console.log(`${seconds(performance.now() - started).trim()} on ${processors} processors; ${seconds(cpuMs).trim()} of CPU`);
  return stoppedBy === undefined && passed;
}

const git = (...args: readonly string[]): string[] =>
  execFileSync('git', args, { cwd: root, encoding: 'utf8' })
    .split('\n')
    .filter((line) => line !== '');

/** Returns the tests of the proofs that find a broken build, by the module that the build changes. */
function proofsByModule(): ReadonlyMap<string, readonly string[]> {
  const folder = join(root, 'proving');
  const tests = readdirSync(folder)
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => [`proving/${name}`, readFileSync(join(folder, name), 'utf8')] as const);
  const list = readFileSync(join(folder, 'broken-builds.ts'), 'utf8');
  const imports = [...list.matchAll(/^import \{ ([^}]+) \} from '\.\/([a-z0-9-]+)\.ts';/gm)].map(([, names = '', file]) => ({
    names: names.split(', '),
    tests: tests.filter(([, text]) => text.includes(`'./${file}.ts'`)).map(([test]) => test),
  }));
  const entries = list.split(/^ {2}(?=(?:async )?'[a-z])/m).slice(1);
  const found = new Map<string, string[]>();
  for (const name of readdirSync(join(folder, 'broken'))) {
    const module = /module: '([^']+)'/.exec(readFileSync(join(folder, 'broken', name), 'utf8'))?.[1];
    if (module === undefined) continue;
    const path = `packages/server/src/${module}`;
    const entry = entries.find((text) => text.includes(`'${name.replace(/\.ts$/, '')}'`)) ?? '';
    const proofs = imports.filter(({ names }) => names.some((one) => entry.includes(one))).flatMap((one) => one.tests);
    found.set(path, [...(found.get(path) ?? []), ...proofs]);
  }
  return found;
}

async function runChanged(ref: string | undefined): Promise<boolean> {
  const files = [...git('diff', '--name-only', '--no-renames', ref ?? 'HEAD'), ...git('ls-files', '--others', '--exclude-standard')];
  const durations = knownDurations();
  const related = relatedTests({ files, graph: moduleGraph(root), proofs: proofsByModule() });
  const suiteOf = (test: string) => suites.findLast(({ include }) => include.some((pattern) => test.startsWith(pattern.split('*')[0] ?? '')));
  const msOf = (test: string): number => {
    const suite = suiteOf(test);
    return (durations.get(test) ?? unknownMs) / (suite === undefined ? 1 : workersOf(suite, availableParallelism()));
  };
  const chosen = withinTime(related, changedMs, msOf);
  console.log(
    `${files.length} changed files touch ${related.length} test files; the nearest ${chosen.length} run${chosen.length < related.length ? ', the others in `npm test`' : ''}.`,
  );
  if (chosen.length === 0) return true;
  const outcome = await run('changed', [vitest, 'run', ...chosen]);
  printRuns([outcome]);
  return outcome.passed;
}

async function runNamed(tests: readonly string[]): Promise<boolean> {
  const outcome = await run('tests', [vitest, 'run', ...tests]);
  printRuns([outcome]);
  return outcome.passed;
}

const args = process.argv.slice(2);
const [first, ref] = args;
const passed = args.length === 0 ? await runAll() : first === '--changed' ? await runChanged(ref) : await runNamed(args);
if (stoppedBy === undefined) process.exitCode = passed ? 0 : 1;
