import { expect, test } from 'vitest';
import { cutFenced } from './cut-fenced.ts';
import { createFence } from './fence.ts';

const fence = createFence({ key: new Uint8Array(32) });
const own = (count: number) => 'mine '.repeat(count);
const foreign = (count: number) => fence.wrap('evil '.repeat(count), { source: 'web' });
const whole = /<<<UNTRUSTED-TEXT ([0-9a-f]{32})[^\n]*>>>\n[^<]*<<<END-UNTRUSTED-TEXT \1>>>/g;

test('wherever the gap is, untrusted text stays between its lines and other text stays outside them', () => {
  for (const text of [
    `${own(20)}\n${foreign(20)}\n${own(20)}\n${foreign(30)}\n${own(20)}`,
    `${foreign(60)}\n\n${own(20)}`,
    `${own(5)}\n${foreign(60)}`,
    foreign(80),
  ])
    for (let kept = 0; kept <= text.length; kept += 1) {
      const cut = cutFenced(text, kept);
      const outside = cut.replaceAll(whole, '');
      expect(outside, `${kept}`).not.toMatch(/evil|<<<|>>>|UNTRUSTED/);
      for (const [block] of cut.matchAll(whole)) expect(block, `${kept}`).not.toContain('mine');
      if (kept === text.length) expect(cut).toBe(text);
    }
});

test('the pointer to the rest of a result in a file stays whole', () => {
  const pointer =
    '\n[60000 characters in all, in 60 lines of the file .gatehouse/offload/tn_1.txt: open what you need of it with "read", offset and limit]';
  const cut = cutFenced(`${foreign(200)}${pointer}`, 400);
  expect(cut.endsWith(pointer)).toBe(true);
  expect(cut.replace(pointer, '').replaceAll(whole, '')).toBe('');
  expect(cut.length).toBeLessThan(600);
});
