import { expect, test } from 'vitest';
import { newTraceId } from './ids.ts';

test('trace ids are those of W3C Trace Context, begin with the time, and end in random digits', () => {
  const ids = Array.from({ length: 200 }, newTraceId);
  for (const id of ids) expect(id).toMatch(/^(?!0{32})[0-9a-f]{32}$/);
  const ages = ids.map((id) => Math.abs(Date.now() - Number.parseInt(id.slice(0, 12), 16)));
  expect(Math.max(...ages)).toBeLessThan(600_000);
  expect(new Set(ids.map((id) => id.slice(18))).size).toBe(200);
});
