import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { leastModules } from './borders-rules.ts';
import { checkBorders } from './borders.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'borders-'));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

function plant(file: string, text: string): void {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), text);
}

const server = 'packages/server/src';

describe('what the borders refuse', () => {
  it.each([
    ['contract takes another package', 'packages/contract/src/x.ts', `import { Hono } from 'hono';`, /not a dependency of zone "contract"/],
    ['contract takes a Node module', 'packages/contract/src/x.ts', `import fs from 'node:fs';`, /not a dependency of zone "contract"/],
    [
      'kernel takes a feature',
      `${server}/kernel/x.ts`,
      `import { y } from '../features/access/tokens/tokens.ts';`,
      /"kernel" must not import "features"/,
    ],
    [
      'kernel takes a type of a feature',
      `${server}/kernel/x.ts`,
      `import type { Y } from '../features/access/tokens/api.ts';`,
      /"kernel" must not import "features"/,
    ],
    ['kernel takes llm', `${server}/kernel/x.ts`, `import { y } from '../llm/model.ts';`, /"kernel" must not import "llm"/],
    ['llm takes runtime', `${server}/llm/x.ts`, `import { y } from '../runtime/turn.ts';`, /"llm" must not import "runtime"/],
    [
      'runtime takes a feature',
      `${server}/runtime/x.ts`,
      `import { y } from '../features/environment/web/web.ts';`,
      /"runtime" must not import "features"/,
    ],
    [
      'a feature takes the gateway',
      `${server}/features/one/a/x.ts`,
      `import { y } from '../../../gateway/app.ts';`,
      /"features" must not import "gateway"/,
    ],
    [
      'a feature takes the composition root',
      `${server}/features/one/a/x.ts`,
      `import { y } from '../../../server.ts';`,
      /"features" must not import "wiring"/,
    ],
    ['a feature reaches into another', `${server}/features/one/a/x.ts`, `import type { Y } from '../b/store.ts';`, /only its api\.ts/],
    ['a feature takes a value of another', `${server}/features/one/a/x.ts`, `import { y } from '../b/api.ts';`, /use "import type"/],
    ['a feature re-exports a value of another', `${server}/features/one/a/x.ts`, `export { y } from '../b/api.ts';`, /use "import type"/],
    ['a feature loads another at run time', `${server}/features/one/a/x.ts`, `const b = await import('../b/b.ts');`, /only its api\.ts/],
    ['a side effect of another feature', `${server}/features/one/a/x.ts`, `import '../b/api.ts';`, /use "import type"/],
    ['the gateway takes a value of a feature', `${server}/gateway/x.ts`, `import { y } from '../features/one/b/api.ts';`, /use "import type"/],
    ['the gateway reaches into a feature', `${server}/gateway/x.ts`, `import type { Y } from '../features/one/b/b.ts';`, /only its api\.ts/],
    [
      'a transaction takes the composition',
      `${server}/transactions/x.ts`,
      `import { y } from '../wiring/foundation.ts';`,
      /"transactions" must not import "wiring"/,
    ],
    ['the composition takes the process', `${server}/wiring/x.ts`, `import { y } from '../process/daemon.ts';`, /"wiring" must not import "server"/],
    [
      'a feature takes a transaction',
      `${server}/features/one/a/x.ts`,
      `import { y } from '../../../transactions/registry.ts';`,
      /"features" must not import "transactions"/,
    ],
    ['the client takes the server', 'packages/client/src/x.ts', `import type { Y } from '@gatehouse/server';`, /"client" must not import "server"/],
    [
      'the client takes a value of the contract',
      'packages/client/src/x.ts',
      `import { contract } from '@gatehouse/contract';`,
      /only types from "contract"/,
    ],
    ['the command line takes the server', 'packages/cli/src/x.ts', `import { y } from '@gatehouse/server';`, /"cli" must not import "server"/],
    [
      'the dashboard takes the server',
      'packages/dashboard/src/x.tsx',
      `import type { Y } from '@gatehouse/server';`,
      /"dashboard" must not import "server"/,
    ],
    ['the server takes the client', `${server}/x.ts`, `import { y } from '@gatehouse/client';`, /"server" must not import "client"/],
    ['the server takes the command line', `${server}/x.ts`, `import { y } from '@gatehouse/cli';`, /"server" must not import "cli"/],
    [
      'product code takes the testkit',
      `${server}/features/one/a/x.ts`,
      `import { y } from '@gatehouse/testkit';`,
      /"features" must not import "testkit"/,
    ],
    ['a deep import into a package', 'packages/cli/src/x.ts', `import { y } from '@gatehouse/contract/src/method.ts';`, /reaches into a package/],
    ['a relative path out of a package', 'packages/cli/src/x.ts', `import { y } from '../../contract/src/method.ts';`, /leaves its package/],
    ['a suite goes round the entry', 'e2e/x.ts', `import { y } from '../packages/server/src/server.ts';`, /leaves its package/],
    ['a package by its own name', `${server}/x.ts`, `import { y } from '@gatehouse/server';`, /its own package by name/],
    [
      'a test goes against the direction',
      `${server}/kernel/x.test.ts`,
      `import { y } from '../features/one/a/a.ts';`,
      /"kernel" must not import "features"/,
    ],
  ])('%s', (_name, file, text, expected) => {
    plant(file, `\n${text}\n`);
    const { violations } = checkBorders(root);
    expect(violations).toHaveLength(1);
    expect(violations[0]).toMatchObject({ file, line: 2 });
    expect(violations[0]?.message).toMatch(expected);
  });

  it('a module in a folder without a zone', () => {
    plant('packages/server/other/x.ts', '');
    expect(checkBorders(root).violations[0]?.message).toMatch(/belongs to no zone/);
  });
});

describe('what the borders allow', () => {
  it.each([
    [
      'the way down',
      `${server}/features/one/a/x.ts`,
      `import { y } from '../../kernel/clock.ts'; import { z } from '../../runtime/turn.ts'; import { c } from '@gatehouse/contract';`,
    ],
    ['a type of another feature', `${server}/features/one/a/x.ts`, `import type { Y } from '../b/api.ts'; import { type Z } from '../c/api.ts';`],
    ['its own files', `${server}/features/one/a/x.ts`, `import { y } from './store.ts'; import { z } from './deep/z.ts';`],
    ['all of it in the composition root', `${server}/server.ts`, `import { y } from './features/one/a/a.ts'; import { z } from './gateway/app.ts';`],
    ['types of the contract in the client', 'packages/client/src/x.ts', `import type { Contract } from '@gatehouse/contract';`],
    ['the testkit in a test', `${server}/features/one/a/x.test.ts`, `import { y } from '@gatehouse/testkit'; import { it } from 'vitest';`],
    ['zod in the contract', 'packages/contract/src/x.ts', `import * as z from 'zod';`],
    ['the real feature in a test', `${server}/gateway/x.test.ts`, `import { y } from '../features/one/b/b.ts';`],
    ['the real feature in a helper of tests', `${server}/gateway/testing/x.ts`, `import { y } from '../../features/one/b/b.ts';`],
    ['the fake provider alone in a suite', 'e2e/x.ts', `import { y } from '../packages/testkit/src/fake-provider.ts';`],
    ['a further entry of a package', `${server}/kernel/x.ts`, `import { y } from '@gatehouse/contract/errors';`],
  ])('%s', (_name, file, text) => {
    plant('packages/contract/package.json', '{ "exports": { ".": "./src/index.ts", "./errors": "./src/errors.ts" } }');
    plant(file, text);
    expect(checkBorders(root)).toMatchObject({ modules: 1, violations: [] });
  });
});

it('sees the whole repository', () => {
  expect(checkBorders(join(import.meta.dirname, '..')).modules).toBeGreaterThanOrEqual(leastModules);
});
