import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// Servers in tests start storage threads from the sources, hundreds of times: with their compiled code kept, a start takes half the time.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/compiled');

const ignored = ['**/node_modules/**', '**/dist/**', '**/.build/**'];

/** Suites that start processes take the machine one after the other: their times would otherwise measure each other. */
const suite = (name: string, order: number, limits: { testTimeout: number; hookTimeout: number }) => ({
  extends: true as const,
  test: {
    name,
    include: [`${name}/**/*.test.ts`],
    exclude: ignored,
    pool: 'forks' as const,
    fileParallelism: false,
    sequence: { groupOrder: order },
    ...limits,
  },
});

export default defineConfig({
  test: {
    globals: false,
    globalSetup: 'tools/test-threads.ts',
    // A test that asserts nothing cannot fail.
    // What a test polls for comes within milliseconds, or much later where the machine does other work too.
    expect: { requireAssertions: true, poll: { interval: 10, timeout: 15_000 } },
    reporters: ['default'],
    passWithNoTests: false,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['packages/*/src/**/*.test.ts'],
          exclude: ignored,
          pool: 'forks',
          // Most of a test is waiting for threads and sockets: one worker less than there are cores would leave half of two cores idle.
          maxWorkers: '100%',
          // Long enough for a machine that does other work too; a test that hangs fails all the same.
          testTimeout: 30_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 0 },
        },
      },
      suite('tools', 1, { testTimeout: 30_000, hookTimeout: 60_000 }),
      suite('e2e', 2, { testTimeout: 30_000, hookTimeout: 60_000 }),
      suite('proving', 3, { testTimeout: 120_000, hookTimeout: 60_000 }),
      suite('bench', 4, { testTimeout: 60_000, hookTimeout: 60_000 }),
    ],
  },
});
