import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { built } from './patch.ts';

const patch = new URL('patch.ts', import.meta.url).href;
const module = new URL('../../packages/server/src/kernel/ids.ts', import.meta.url);
const asUrl = (code: string) => `data:text/javascript,${encodeURIComponent(code)}`;
/** The line that creates an id, whatever its expression. */
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

/** Each is caught in the full forms, and some in the short ones too. Kills (`killed-in-…`) check their own texts. */
test('every broken build still finds its text', () => {
  const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.ts') && !/^(?:patch|killed-in-)/.test(name));
  const program = `const { built } = await import('${patch}');
    for (const file of ${JSON.stringify(files)}) await import(new URL(file, '${patch}').href);
    process.stdout.write(JSON.stringify(built));`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8', env: {} });
  const faults = JSON.parse(stdout) as typeof built;
  expect(new Set(faults.map(({ name }) => `${name.split(':')[0]}.ts`))).toEqual(new Set(files));
  const lost = faults.flatMap(({ name, module, replace }) => {
    const text = readFileSync(new URL(`../../packages/server/src/${module}`, import.meta.url), 'utf8');
    return replace.filter(({ from }) => text.split(from).length !== 2).map(({ from }) => `${name}: ${from}`);
  });
  expect(lost).toEqual([]);
});

test('the fault is in every thread, and reports itself', () => {
  const { stdout, stderr } = withFault({ module: 'kernel/ids.ts', from: idLine });
  expect(stdout.trim()).toBe('changed changed');
  expect(stderr.match(/broken build: test/g)).toHaveLength(2);
});

test('a text that no longer exists stops the process', () => {
  const { status, stderr } = withFault({ module: 'kernel/ids.ts', from: 'return prefix + somethingElse()' });
  expect([status, stderr]).toEqual([99, expect.stringContaining('does not occur exactly once in kernel/ids.ts')]);
});

test('a module that no longer exists stops the process', () => {
  const { status, stderr } = withFault({ module: 'kernel/gone.ts', from: idLine });
  expect([status, stderr]).toEqual([99, expect.stringContaining('there is no module kernel/gone.ts')]);
});
