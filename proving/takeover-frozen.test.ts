import { test } from 'vitest';
import { findPostgres } from '@gatehouse/testkit/postgres';
import { proveTakeoverFrozen } from './takeover-frozen.ts';

test
  .runIf(findPostgres() !== undefined)
  .concurrent('nothing of a frozen daemon is kept, and its commands write nothing after the take-over', async ({ expect: is }) => {
    const { wrong, written } = await proveTakeoverFrozen({ frozenMs: 0 });
    is(wrong).toEqual([]);
    is(written).toBeGreaterThan(0);
  });

test.runIf(findPostgres() !== undefined).concurrent('a build that does not compare fences is caught', async ({ expect: is }) => {
  const { wrong } = await proveTakeoverFrozen({ frozenMs: 0, broken: 'no-lease-fence' });
  is(wrong.join('\n')).toMatch(/a write of the frozen daemon was acknowledged after the take-over/);
});
