import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
const feature = 'packages/server/src/features/agents/agents';
const name = 'agents.exists';
let copy: string;

beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'gatehouse-recipe-'));
  const skipped = new Set(['node_modules', 'dist', '.build']);
  for (const entry of ['package.json', 'tsconfig.base.json', 'vitest.config.ts', 'docs/reference', 'packages', 'tools'])
    cpSync(join(root, entry), join(copy, entry), { recursive: true, filter: (path) => !skipped.has(basename(path)) });
  mkdirSync(join(copy, 'node_modules/@gatehouse'), { recursive: true });
  for (const entry of readdirSync(join(root, 'node_modules')))
    if (entry !== '@gatehouse' && entry !== '.cache') symlinkSync(join(root, 'node_modules', entry), join(copy, 'node_modules', entry));
  for (const entry of readdirSync(join(copy, 'packages'))) symlinkSync(join(copy, 'packages', entry), join(copy, 'node_modules/@gatehouse', entry));
});
afterAll(() => rmSync(copy, { recursive: true, force: true }));

/** Inserts a text before the first match in a file of the copy. */
function insert(file: string, before: RegExp, text: string): void {
  const path = join(copy, file);
  const source = readFileSync(path, 'utf8');
  const at = source.search(before);
  if (at < 0) throw new Error(`${file} has no ${before}`);
  writeFileSync(path, source.slice(0, at) + text + source.slice(at));
}

function run(file: string, ...args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(copy, file), ...args], { cwd: copy, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${file} ${args.join(' ')} failed:\n${stdout}${stderr}`);
}

/** Returns the files of a tree and their texts, without what programs keep for themselves. */
function filesOf(folder: string): ReadonlyMap<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    files.map(({ parentPath, name: file }) => {
      const path = join(parentPath, file);
      return [path.slice(folder.length + 1).replaceAll('\\', '/'), readFileSync(path, 'utf8')];
    }),
  );
}

/** Returns the files that the recipe names, in its order. */
function namedFiles(): string[] {
  const recipe = /### A method\n([^]*?)\n### /.exec(readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8'))?.[1] ?? '';
  const steps = recipe.split('\n').filter((line) => /^\d\. /.test(line));
  return steps.flatMap((step) => [...step.matchAll(/`([\w./-]+\.(?:ts|md|json))`/g)].map(([, path = '']) => path));
}

test('the recipe "A method" names every file that a method touches, and no other', { timeout: 600_000 }, () => {
  const before = new Map(
    ['docs', 'packages'].flatMap((folder) => [...filesOf(join(copy, folder))].map(([path, text]) => [`${folder}/${path}`, text])),
  );
  insert(
    'packages/contract/src/methods/agents.ts',
    / {2}'agents\.create': method/,
    `  '${name}': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns whether an agent exists.',
    params: () => z.strictObject({ agentId: AgentId }),
    result: () => z.strictObject({ exists: z.boolean() }),
    examples: [{ params: { agentId: 'scout' }, result: { exists: false } }],
    since: '0.1.0',
  }),
`,
  );
  insert('packages/contract/src/spec-surface.test.ts', / {2}'memory\.review',/, `  '${name}',\n`);
  insert(`${feature}/agents.ts`, /'suspend' \|/, "'exists' | ");
  insert(`${feature}/agents.ts`, / +'agents\.suspend':/, `    '${name}': async ({ agentId }) => ({ exists: agentId === 'filed' }),\n`);
  insert(
    `${feature}/agents.rpc.test.ts`,
    / {2}test\('a dry run/,
    `  test('an agent exists or not', async () => {
    expect(await server.client.call('${name}', { agentId: 'filed' })).toEqual({ exists: true });
    expect(await server.client.call('${name}', { agentId: 'nobody' })).toEqual({ exists: false });
  });

`,
  );
  run('tools/gen.ts');
  const after = ['docs', 'packages'].flatMap((folder) =>
    [...filesOf(join(copy, folder))].map(([path, text]) => [`${folder}/${path}`, text] as const),
  );
  const touched = after.filter(([path, text]) => before.get(path) !== text).map(([path]) => path);
  const named = namedFiles().map((path) => (path.startsWith('docs/') ? path : `packages/${path}`));
  expect(touched.toSorted()).toEqual(named.toSorted());
  // Other tests do not know the method.
  const types = {
    extends: './tsconfig.base.json',
    compilerOptions: { composite: false, emitDeclarationOnly: false, noEmit: true, types: ['node'] },
    include: ['packages/server/src', 'packages/server/src/*.json', 'packages/client/src'],
    exclude: ['**/*.test.ts'],
    files: [`${feature}/agents.rpc.test.ts`],
  };
  writeFileSync(join(copy, 'tsconfig.json'), JSON.stringify(types));
  run('node_modules/typescript/bin/tsc', '-p', '.', '--checkers', '1');
  run(
    'node_modules/vitest/vitest.mjs',
    'run',
    // Node loads the sources itself: for three files the transforms of vite take longer than the tests.
    '--experimental.viteModuleRunner=false',
    'packages/contract/src/spec-surface.test.ts',
    'packages/contract/src/contract.test.ts',
    `${feature}/agents.rpc.test.ts`,
  );
});
