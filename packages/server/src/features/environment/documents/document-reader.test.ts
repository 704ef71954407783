import { expect, test } from 'vitest';
import { createStepClock } from '@gatehouse/testkit';
import { createDocumentReader } from './document-reader.ts';
import { TextCache } from './text-cache.ts';

const call = { identity: { tokenId: 't', principalId: 'p', scopes: [] }, signal: new AbortController().signal };
const request = { bytes: Buffer.from('hello'), extension: 'txt', limits: { maxCharacters: 1000, maxPages: 10 }, timeoutMs: 5000, param: undefined };
const thread = (code: string) => new URL(`data:text/javascript,${encodeURIComponent(code)}`);

test('reads a document in its own thread', async () => {
  const { read } = createDocumentReader(createStepClock());
  expect(await read(request, call)).toEqual({ mimeType: 'text/plain', parts: [{ label: '', text: 'hello' }], truncated: false, notes: [] });
});

test('stops a thread that takes too long, without holding the event loop', async () => {
  const clock = createStepClock();
  const failed = createDocumentReader(clock, thread('for (;;);'))
    .read(request, call)
    .catch((error: unknown) => error);
  await expect.poll(() => clock.pending()).toBeGreaterThan(0);
  clock.advance(5000);
  expect(await failed).toMatchObject({ code: 'timeout' });
});

test('stops a thread when its caller leaves', async () => {
  const caller = new AbortController();
  const reading = createDocumentReader(createStepClock(), thread('for (;;);')).read(request, { ...call, signal: caller.signal });
  caller.abort();
  await expect(reading).rejects.toMatchObject({ code: 'cancelled' });
});

test('bounds the memory of a thread', async () => {
  const hungry = thread('const kept = []; for (;;) kept.push(new Array(1e5).fill(kept.length));');
  await expect(createDocumentReader(createStepClock(), hungry).read(request, call)).rejects.toMatchObject({ code: 'payload_too_large' });
});

test('keeps texts within its bounds and drops those used longest ago', () => {
  const cache = new TextCache();
  const document = (text: string) => ({ mimeType: 'text/plain', parts: [{ label: '', text }], truncated: false, notes: [] });
  for (let index = 0; index < 5; index += 1) cache.set(`k${index}`, document('x'.repeat(2_000_000)));
  expect(['k0', 'k1', 'k4'].map((key) => cache.get(key) !== undefined)).toEqual([false, true, true]);
});
