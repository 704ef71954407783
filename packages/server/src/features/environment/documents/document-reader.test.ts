import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { createStepClock } from '@gatehouse/testkit';
import { runInProcess } from '../../../kernel/run-in-process.ts';
import { createDocumentReader } from './document-reader.ts';
import { TextCache } from './text-cache.ts';

const call = { identity: { tokenId: 't', principalId: 'p', scopes: [] }, signal: new AbortController().signal };
const request = { bytes: Buffer.from('hello'), extension: 'txt', limits: { maxCharacters: 1000, maxPages: 10 }, timeoutMs: 5000, param: undefined };
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-document-'));
afterAll(() => rmSync(folder, { recursive: true }));

function program(name: string, code: string): URL {
  const file = join(folder, `${name}.mjs`);
  writeFileSync(file, code);
  return pathToFileURL(file);
}
const endless = program('endless', 'for (;;);');

test('reads a document in a separate process', async () => {
  const { read } = createDocumentReader(createStepClock());
  expect(await read(request, call)).toEqual({ mimeType: 'text/plain', parts: [{ label: '', text: 'hello' }], truncated: false, notes: [] });
});

test('stops a process that takes too long, without holding the event loop', async () => {
  const clock = createStepClock();
  const failed = createDocumentReader(clock, endless)
    .read(request, call)
    .catch((error: unknown) => error);
  await expect.poll(() => clock.pending()).toBeGreaterThan(0);
  clock.advance(5000);
  expect(await failed).toMatchObject({ code: 'timeout' });
});

test('stops a process when its caller leaves', async () => {
  const caller = new AbortController();
  const reading = createDocumentReader(createStepClock(), endless).read(request, { ...call, signal: caller.signal });
  caller.abort();
  await expect(reading).rejects.toMatchObject({ code: 'cancelled' });
});

test.runIf(process.platform === 'linux')('the system stops a process that computes without end, also when the daemon was killed', async () => {
  const limits = program('limits', `import { readFileSync } from 'node:fs'; process.send(readFileSync('/proc/self/limits', 'utf8'));`);
  const answer = await runInProcess({
    program: limits,
    order: {},
    input: new Uint8Array(),
    memoryMb: 64,
    timeoutMs: 400,
    clock: createStepClock(),
    signal: call.signal,
    subject: 'The document',
  });
  // In seconds of processor time: waiting for its end would take longer on a busy machine.
  expect(answer).toMatch(/^Max cpu time +2 +2 /m);
});

test('bounds the memory of a process', async () => {
  const hungry = program('hungry', 'const kept = []; for (;;) kept.push(new Array(1e5).fill(kept.length));');
  await expect(createDocumentReader(createStepClock(), hungry).read(request, call)).rejects.toMatchObject({ code: 'payload_too_large' });
});

test('a process that ends without an answer, or cannot be run, is an answer too', async () => {
  const { read } = createDocumentReader(createStepClock(), program('silent', ''));
  await expect(read(request, call)).rejects.toMatchObject({ code: 'payload_too_large' });
  const gone = createDocumentReader(createStepClock(), pathToFileURL(join(folder, 'gone.mjs')));
  await expect(gone.read(request, call)).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('file of the program') });
  // More than a pipe takes, which nobody reads.
  await expect(read({ ...request, bytes: Buffer.alloc(4_000_000) }, call)).rejects.toMatchObject({ code: 'payload_too_large' });
});

test('keeps texts within its bounds and drops those used longest ago', () => {
  const cache = new TextCache();
  const document = (text: string) => ({ mimeType: 'text/plain', parts: [{ label: '', text }], truncated: false, notes: [] });
  for (let index = 0; index < 5; index += 1) cache.set(`k${index}`, document('x'.repeat(2_000_000)));
  expect(['k0', 'k1', 'k4'].map((key) => cache.get(key) !== undefined)).toEqual([false, true, true]);
});
