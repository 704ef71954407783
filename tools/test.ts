import { spawn } from 'node:child_process';
import { join } from 'node:path';

/**
 * What `npm test` runs: the checks, then every test. A failed check does not keep the tests from running.
 * With arguments (`npm test -- packages/server/src/runtime`) only the named tests run.
 */
const root = join(import.meta.dirname, '..');
const args = process.argv.slice(2);

function run(file: string, parameters: readonly string[]): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const child = spawn(process.execPath, [file, ...parameters], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  const forward = (signal: NodeJS.Signals): void => void child.kill(signal);
  process.on('SIGINT', forward).on('SIGTERM', forward);
  child.on('close', (code) => resolve(code === 0));
  return promise;
}

const checks = args.length > 0 || (await run(join('tools', 'check.ts'), []));
const tests = await run(join('node_modules', 'vitest', 'vitest.mjs'), ['run', ...args]);
if (!checks) console.error('The checks before the tests failed; their output is above ("npm run check" runs them alone).');
process.exitCode = checks && tests ? 0 : 1;
