import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { aids, brokenBuilds } from '../broken-builds.ts';

const patch = new URL('patch.ts', import.meta.url).href;
const module = new URL('../../packages/server/src/kernel/ids.ts', import.meta.url);
const asUrl = (code: string) => `data:text/javascript,${encodeURIComponent(code)}`;
/** The line that creates an id, whatever its expression. */
const idLine = /return `\$\{prefix\}.*;/.exec(readFileSync(module, 'utf8'))?.[0] ?? '';

const withText = (fault: { readonly module: string; readonly from: string }) =>
  withFault(`buildIn(${JSON.stringify({ name: 'test', module: fault.module, replace: [{ from: fault.from, to: "return 'changed';" }] })})`);
const withExport = (name: string) =>
  withFault(
    `changeExports({ name: 'test', module: 'kernel/ids.ts', exports: { ${name}: (original) => (prefix) => original(prefix).slice(0, 1) + '!' } })`,
  );

/** Loads kernel/ids.ts with a fault built in, in the main thread and in a worker. */
function withFault(call: string) {
  const setUp = `import { buildIn, changeExports } from '${patch}'; ${call};`;
  const program = `import { newId } from '${module.href}'; import { isMainThread, Worker } from 'node:worker_threads'; process.stdout.write(newId('a') + ' '); if (isMainThread) new Worker(new URL(import.meta.url), { execArgv: [] });`;
  return spawnSync(process.execPath, ['--input-type=module', '--eval', `await import(${JSON.stringify(asUrl(program))})`], {
    encoding: 'utf8',
    env: { NODE_OPTIONS: `--import="${asUrl(setUp)}"` },
  });
}

interface Found {
  readonly name: string;
  readonly module: string;
  readonly texts: readonly string[];
  readonly exports: readonly string[];
}

/** That each is caught is shown by `npm run prove -- --broken`. */
test('every broken build still finds its texts and exports', () => {
  const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.ts') && !name.startsWith('patch.'));
  const program = `const { built } = await import('${patch}');
    for (const file of ${JSON.stringify(files)}) await import(new URL(file, '${patch}').href);
    process.stdout.write(JSON.stringify(built.map(({ name, module, replace = [], exports = {} }) =>
      ({ name, module, texts: replace.map(({ from }) => from), exports: Object.keys(exports) }))));`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8', env: {} });
  const faults = JSON.parse(stdout) as readonly Found[];
  // A build is selected by the name of its file.
  expect(new Set(faults.map(({ name }) => `${name}.ts`))).toEqual(new Set(files));
  const lost = faults.flatMap(({ name, module, texts, exports }) => {
    const source = readFileSync(new URL(`../../packages/server/src/${module}`, import.meta.url), 'utf8');
    const isExported = (one: string) => new RegExp(`^export (?:async )?(?:function\\*?|const|class) ${one}\\b`, 'm').test(source);
    const gone = [...texts.filter((text) => source.split(text).length !== 2), ...exports.filter((one) => !isExported(one))];
    return gone.map((one) => `${name}: ${one}`);
  });
  expect(lost).toEqual([]);
});

test('every broken build has a proof that is run against it by `npm run prove -- --broken`', () => {
  const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));
  expect([...Object.keys(brokenBuilds), ...aids].toSorted()).toEqual(files.map((name) => name.slice(0, -3)).toSorted());
});

test('the fault is in every thread, and reports itself', () => {
  const { stdout, stderr } = withText({ module: 'kernel/ids.ts', from: idLine });
  expect(stdout.trim()).toBe('changed changed');
  expect(stderr.match(/broken build: test/g)).toHaveLength(2);
});

test('a changed export is in every thread, and reports itself', () => {
  const { stdout, stderr } = withExport('newId');
  expect(stdout.trim()).toBe('a! a!');
  expect(stderr.match(/broken build: test/g)).toHaveLength(2);
});

test('an export that no longer exists stops the process', () => {
  const { status, stderr } = withExport('oldId');
  expect([status, stderr]).toEqual([99, expect.stringContaining('kernel/ids.ts does not export oldId')]);
});

test('a text that no longer exists stops the process', () => {
  const { status, stderr } = withText({ module: 'kernel/ids.ts', from: 'return prefix + somethingElse()' });
  expect([status, stderr]).toEqual([99, expect.stringContaining('does not occur exactly once in kernel/ids.ts')]);
});

test('a module that no longer exists stops the process', () => {
  const { status, stderr } = withText({ module: 'kernel/gone.ts', from: idLine });
  expect([status, stderr]).toEqual([99, expect.stringContaining('there is no module kernel/gone.ts')]);
});
