import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// Servers in tests start storage threads from the sources, hundreds of times: with their compiled code kept, a start takes half the time.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/compiled');

const ignored = ['**/node_modules/**', '**/dist/**', '**/.build/**'];

/** Proofs that measure time or memory: each runs alone. */
const timed = ['r12', 'r14', 'r15', 'r16', 'r17', 'r18', 'r19', 'r20', 'r24', 'r29', 'r32'].map((name) => `proving/${name}-*.test.ts`);

interface Suite {
  readonly name: string;
  readonly include: readonly string[];
  readonly exclude?: readonly string[];
  /** Suites of one order share the workers; those of the next one start when they are done. */
  readonly order: number;
  /** One file after the other. */
  readonly alone?: true;
  /** Milliseconds for a test, long enough for a machine that does other work too; one that hangs fails all the same. */
  readonly testTimeout: number;
}

const suite = ({ name, include, exclude = [], order, alone, testTimeout }: Suite) => ({
  extends: true as const,
  test: {
    name,
    include: [...include],
    exclude: [...ignored, ...exclude],
    pool: 'forks' as const,
    // Most of a test is waiting for processes, threads and sockets: one worker less than there are cores would leave half of two cores idle.
    ...(alone ? { fileParallelism: false } : { maxWorkers: '100%' }),
    sequence: { groupOrder: order },
    testTimeout,
    hookTimeout: 60_000,
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
      suite({ name: 'unit', include: ['packages/*/src/**/*.test.ts'], order: 0, testTimeout: 30_000 }),
      suite({ name: 'tools', include: ['tools/**/*.test.ts'], order: 0, testTimeout: 30_000 }),
      suite({ name: 'e2e', include: ['e2e/**/*.test.ts'], order: 1, testTimeout: 60_000 }),
      suite({ name: 'proving', include: ['proving/**/*.test.ts'], exclude: timed, order: 1, testTimeout: 120_000 }),
      suite({ name: 'timed', include: timed, order: 2, alone: true, testTimeout: 120_000 }),
      suite({ name: 'bench', include: ['bench/**/*.test.ts'], order: 3, alone: true, testTimeout: 60_000 }),
    ],
  },
});
