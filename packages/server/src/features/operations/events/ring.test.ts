import { expect, it } from 'vitest';
import { EventRing } from './ring.ts';

const start = 1_000;

function ringOf(bounds: { readonly maxCount: number; readonly maxBytes: number }) {
  const ring = new EventRing(start, bounds);
  let id = start;
  return {
    ring,
    push: (json: string) => ring.push({ id: (id += 1), kind: 'system:error', owner: undefined, agentId: undefined, atMs: id, json }),
    texts: () => ring.after(ring.floor, Number.MAX_SAFE_INTEGER).map((event) => event.json),
  };
}

it('returns what was stored, whatever the sizes and wherever the buffer wraps around', () => {
  const { ring, push, texts } = ringOf({ maxCount: 7, maxBytes: 100 });
  const pushed: string[] = [];
  for (let n = 0; n < 500; n += 1) {
    // One, two and four bytes a character; every fiftieth is larger than the whole buffer.
    const text = ['x', 'é', '😀'][n % 3]?.repeat(n % 50 === 49 ? 120 : (n * 7) % 24) ?? '';
    push(text);
    pushed.push(text);
    const held = texts();
    expect(held.length).toBeGreaterThan(0);
    expect(held.length).toBeLessThanOrEqual(7);
    expect(held).toEqual(pushed.slice(-held.length));
    expect(held.length === 1 || Buffer.byteLength(held.join('')) <= 100).toBe(true);
    expect(ring.floor).toBe(start + pushed.length - held.length);
    expect([...ring.newestFirst()].map((event) => event.json)).toEqual(held.toReversed());
  }
});

it('holds as much as its limits allow', () => {
  const few = ringOf({ maxCount: 3, maxBytes: 1_000 });
  for (const text of ['a', 'b', 'c', 'd']) few.push(text);
  expect(few.texts()).toEqual(['b', 'c', 'd']);
  const large = ringOf({ maxCount: 100, maxBytes: 10 });
  for (const text of ['aaaaa', 'bbbbb', 'ccccc']) large.push(text);
  expect(large.texts()).toEqual(['bbbbb', 'ccccc']);
});

it('returns a page of a size, and at least one event', () => {
  const { ring, push } = ringOf({ maxCount: 10, maxBytes: 10_000 });
  for (let n = 0; n < 6; n += 1) push('y'.repeat(244));
  expect(ring.after(start, 1_000).map(({ id, atMs }) => [id, atMs])).toEqual([
    [start + 1, start + 1],
    [start + 2, start + 2],
  ]);
  expect(ring.after(start + 5, 1)).toHaveLength(1);
  expect(ring.after(start + 6, 1_000)).toEqual([]);
});
