import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { fetchFolder } from './archive.ts';
import { SkillsConfig } from '../config.ts';

test('requests for all candidate branches share one deadline', async () => {
  const clock = createStepClock();
  const { imports, installVetting } = SkillsConfig().parse({ imports: { timeoutMs: 40_000 } });
  const waits: number[] = [];
  const egress = {
    async request({ timeoutMs }: { readonly timeoutMs: number }) {
      waits.push(timeoutMs);
      clock.advance(15_000);
      return { url: '', status: 404, headers: {}, body: Buffer.alloc(0), truncated: false };
    },
  };
  const url = 'https://github.com/ada/skills/tree/a/b/c/d/e/f/notes';
  await expect(
    fetchFolder({ clock, egress, limits: () => installVetting, imports: () => imports }, url, new AbortController().signal),
  ).rejects.toMatchObject({
    code: 'timeout',
  });
  expect(waits).toEqual([40_000, 25_000, 10_000]);
});
