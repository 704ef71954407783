import { appendFileSync, mkdtempSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { type Ends, Recordings } from './recordings.ts';

const dir = mkdtempSync(join(tmpdir(), 'gatehouse-recordings-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const id = 'rec_01a22d3f-4566-71c8-b2ff-9ba53cec36a3';
const file = (end: string) => join(dir, 'default', `${id}${end}`);
const stepOf = (step: number, detail: string) =>
  ({ step, atMs: step, tookMs: 1, principalId: 'tok_1', traceId: 'none', by: 'agent', action: 'click', detail, ok: true }) as const;

test('what a full disk cut off is not shown, and the next step takes its place', async () => {
  const recordings = new Recordings(dir);
  const ends: Ends = { text: 0, pictures: 0 };
  const picture = (char: string) => Buffer.alloc(50, char);
  const details = async () => (await recordings.read('default', id)).steps.map(({ detail }) => detail);
  await recordings.append('default', id, ends, { step: stepOf(1, 'whole'), jpeg: picture('a') });
  // A picture and a long line of which the disk took only a part.
  appendFileSync(file('.pictures'), 'b'.repeat(20));
  appendFileSync(file('.steps'), JSON.stringify(stepOf(2, 'cut'.repeat(100))).slice(0, -9));
  expect(await details()).toEqual(['whole']);
  await recordings.append('default', id, ends, { step: stepOf(3, 'short'), jpeg: picture('c') });
  expect(await details()).toEqual(['whole', 'short']);
  await recordings.append('default', id, ends, { step: stepOf(4, 'last'), jpeg: undefined });
  expect(await details()).toEqual(['whole', 'short', 'last']);
  const [first, second] = (await recordings.read('default', id)).steps.map(({ picture: place }) => place);
  expect(first && (await recordings.picture('default', id, first))).toEqual(picture('a'));
  expect(second && (await recordings.picture('default', id, second))).toEqual(picture('c'));
  await recordings.append('default', id, ends, { step: stepOf(7, 'later'), gap: { from: 5, missing: 2, reason: 'disk_full' } });
  await recordings.appendGap('default', id, ends, { from: 8, missing: 1, reason: 'failed' });
  const { steps, gaps } = await recordings.read('default', id);
  expect(steps.map(({ step }) => step)).toEqual([1, 3, 4, 7]);
  expect(gaps).toEqual([
    { from: 5, missing: 2, reason: 'disk_full' },
    { from: 8, missing: 1, reason: 'failed' },
  ]);
  // A picture that is not there whole is none.
  truncateSync(file('.pictures'), 90);
  expect(second && (await recordings.picture('default', id, second))).toBeUndefined();
});
