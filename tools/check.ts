import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { parseArgs } from 'node:util';

/** Runs all checks except tests, concurrently. `--fix` first applies fixes of formatter and linter; `--only a,b` picks some. */
interface Step {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** Prints its output also when it passes. */
  readonly report?: true;
}

const root = join(import.meta.dirname, '..');
const bin = join(root, 'node_modules', '.bin');
const node = process.execPath;
const fixes: readonly Step[] = [
  { name: 'oxlint --fix', command: [join(bin, 'oxlint'), '--fix', '--silent'] },
  { name: 'oxfmt', command: [join(bin, 'oxfmt')] },
];
const steps: readonly Step[] = [
  { name: 'types', command: [join(bin, 'tsc'), '-b', '--pretty', 'false', '--checkers', '1'] },
  { name: 'lint', command: [join(bin, 'oxlint'), '--format', 'unix'] },
  { name: 'borders', command: [node, 'tools/borders.ts'] },
  { name: 'words', command: [node, 'tools/words.ts'] },
  { name: 'messages', command: [node, 'tools/messages.ts'] },
  { name: 'titles', command: [node, 'tools/titles.ts'] },
  { name: 'unused', command: [join(bin, 'knip'), '--no-progress', '--no-config-hints'] },
  { name: 'versions', command: [join(bin, 'sherif'), '--ignore-rule', 'root-package-manager-field'] },
  { name: 'format', command: [join(bin, 'oxfmt'), '--list-different'] },
  ...(existsSync(join(root, 'tools', 'gen.ts')) ? [{ name: 'reference', command: [node, 'tools/gen.ts', '--check'] } as const] : []),
  { name: 'size', command: [node, 'tools/check-size.ts'], report: true },
];
/** CPU seconds that one process of a check may use: none takes a third of it, and other load on the machine does not change it. */
const cpuLimitSeconds = 300;
/** Stops a check that hangs. */
const hangLimitMs = 30 * 60_000;
const maxLines = 80;

interface Outcome {
  readonly step: Step;
  readonly passed: boolean;
  readonly ms: number;
  readonly output: string;
}

function run(step: Step): Promise<Outcome> {
  const started = performance.now();
  const limited = process.platform === 'win32' ? step.command : ['sh', '-c', `ulimit -t ${cpuLimitSeconds}; exec "$@"`, 'sh', ...step.command];
  const [file = '', ...args] = limited;
  const env = {
    ...process.env,
    // The shebangs of the tools ask for "node": they get the one of this repository, whatever the machine has.
    PATH: `${bin}${delimiter}${process.env['PATH'] ?? ''}`,
    NO_COLOR: '1',
    // Types are computed by programs in Go: threads of them compute the same types again, and collect garbage more often than needed.
    GOMAXPROCS: step.name === 'lint' ? '1' : undefined,
    GOGC: '400',
  };
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const child = spawn(file, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: hangLimitMs, killSignal: 'SIGKILL' });
  let output = '';
  const take = (chunk: Buffer): void => {
    output += chunk.toString();
  };
  child.stdout.on('data', take);
  child.stderr.on('data', take);
  child.on('error', (error) => resolve({ step, passed: false, ms: performance.now() - started, output: error.message }));
  child.on('close', (code, signal) => {
    const ms = performance.now() - started;
    if (signal) output += `\nstopped by ${signal} after ${Math.round(ms / 1000)} s (limit: ${cpuLimitSeconds} s of CPU time)`;
    resolve({ step, passed: code === 0, ms, output: output.trim() });
  });
  return promise;
}

function print({ step, passed, ms, output }: Outcome): void {
  console.log(`${passed ? 'ok    ' : 'FAILED'}  ${step.name.padEnd(12)} ${(ms / 1000).toFixed(1).padStart(5)} s`);
  if (!output || (passed && !step.report)) return;
  const lines = output.split('\n');
  for (const line of lines.slice(0, maxLines)) console.log(`        ${line}`);
  if (lines.length > maxLines)
    console.log(`        … and ${lines.length - maxLines} lines more: ${step.command.map((part) => part.replace(`${root}/`, '')).join(' ')}`);
}

const { values } = parseArgs({ options: { fix: { type: 'boolean', default: false }, only: { type: 'string' } } });
const only = values.only?.split(',');
const unknown = only?.filter((name) => !steps.some((step) => step.name === name)) ?? [];
if (unknown.length > 0) {
  console.error(`No such check: ${unknown.join(', ')}. There are: ${steps.map((step) => step.name).join(', ')}.`);
  process.exit(2);
}
const started = performance.now();
if (values.fix) for (const step of fixes) await run(step);
const outcomes = await Promise.all(
  steps
    .filter((step) => only?.includes(step.name) ?? true)
    .map(async (step) => {
      const outcome = await run(step);
      print(outcome);
      return outcome;
    }),
);
const failed = outcomes.filter((outcome) => !outcome.passed).map((outcome) => outcome.step.name);
const seconds = ((performance.now() - started) / 1000).toFixed(1);
console.log(
  failed.length > 0
    ? `\n${failed.length} of ${outcomes.length} checks failed: ${failed.join(', ')} (${seconds} s)`
    : `\nAll ${outcomes.length} checks passed (${seconds} s)`,
);
process.exitCode = failed.length > 0 ? 1 : 0;
