import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const patch = new URL('patch.ts', import.meta.url).href;
const module = new URL('../../packages/server/src/kernel/ids.ts', import.meta.url);
const asUrl = (code: string) => `data:text/javascript,${encodeURIComponent(code)}`;
/** The line that makes an id, whatever it is made of. */
const idLine = /return `\$\{prefix\}.*;/.exec(readFileSync(module, 'utf8'))?.[0] ?? '';

/** Loads kernel/ids.ts with a fault built in, in the main thread and in a worker. */
function withFault(fault: { readonly module: string; readonly from: string }) {
  const setUp = `import { buildIn } from '${patch}'; buildIn(${JSON.stringify({ name: 'test', module: fault.module, replace: [{ from: fault.from, to: "return 'changed';" }] })});`;
  const program = `import { newId } from '${module.href}'; import { isMainThread, Worker } from 'node:worker_threads'; process.stdout.write(newId('a') + ' '); if (isMainThread) new Worker(new URL(import.meta.url), { execArgv: [] });`;
  return spawnSync(process.execPath, ['--input-type=module', '--eval', `await import(${JSON.stringify(asUrl(program))})`], {
    encoding: 'utf8',
    env: { NODE_OPTIONS: `--import="${asUrl(setUp)}"` },
  });
}

test('the fault is in every thread, and says so', () => {
  const { stdout, stderr } = withFault({ module: 'kernel/ids.ts', from: idLine });
  expect(stdout.trim()).toBe('changed changed');
  expect(stderr.match(/broken build: test/g)).toHaveLength(2);
});

test('a text that is not there any more ends the process', () => {
  const { status, stderr } = withFault({ module: 'kernel/ids.ts', from: 'return prefix + somethingElse()' });
  expect([status, stderr]).toEqual([99, expect.stringContaining('does not stand exactly once in kernel/ids.ts')]);
});

test('a module that is not there any more ends the process', () => {
  const { status, stderr } = withFault({ module: 'kernel/gone.ts', from: idLine });
  expect([status, stderr]).toEqual([99, expect.stringContaining('there is no module kernel/gone.ts')]);
});
