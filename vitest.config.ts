import { join } from 'node:path';
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { type Suite, suites, workersOf } from './tools/suites.ts';

// Servers in tests start storage threads from the sources, hundreds of times: with their compiled code kept, a start takes half the time.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/compiled');

const ignored = ['**/node_modules/**', '**/dist/**', '**/.build/**'];

const toProject = (suite: Suite, index: number) => {
  const { name, include, exclude = [], measures, shared, setup, testTimeout, retry = 0 } = suite;
  return {
    extends: true as const,
    test: {
      name,
      include: [...include],
      exclude: [...ignored, ...exclude],
      pool: 'forks' as const,
      ...(shared && { isolate: false }),
      ...(setup !== undefined && { globalSetup: setup }),
      ...(measures === 1 ? { fileParallelism: false } : { maxWorkers: workersOf(suite, availableParallelism()) }),
      // Projects with different numbers of workers run one after the other.
      sequence: { groupOrder: index },
      testTimeout,
      retry,
      hookTimeout: 120_000,
    },
  };
};

export default defineConfig({
  test: {
    globals: false,
    globalSetup: ['tools/test-threads.ts', 'tools/test-postgres.ts'],
    // A test that asserts nothing cannot fail.
    // What a test polls for comes within milliseconds, or much later where the machine does other work too.
    expect: { requireAssertions: true, poll: { interval: 10, timeout: 25_000 } },
    reporters: ['default'],
    passWithNoTests: false,
    projects: suites.map(toProject),
  },
});
