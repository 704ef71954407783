import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { createStepClock } from '@gatehouse/testkit';
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

test('a process that computes without end does not outlive a killed daemon for long', async () => {
  const pidFile = join(folder, 'pid');
  const busy = program('busy', `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(pidFile)}, String(process.pid)); for (;;);`);
  const [runner, clock] = ['kernel/run-in-process.ts', 'kernel/clock.ts'].map((path) => new URL(`../../../${path}`, import.meta.url).href);
  const daemon = program(
    'daemon',
    `import { runInProcess } from ${JSON.stringify(runner)};
    import { systemClock as clock } from ${JSON.stringify(clock)};
    await runInProcess({ program: new URL(${JSON.stringify(busy.href)}), order: {}, input: new Uint8Array(), memoryMb: 64, timeoutMs: 400, clock: { ...clock, after: () => () => {} }, signal: new AbortController().signal, subject: '' });`,
  );
  const running = spawn(process.execPath, [fileURLToPath(daemon)], { stdio: 'ignore' });
  await expect.poll(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8') !== '', { timeout: 20_000 }).toBe(true);
  const pid = Number(readFileSync(pidFile, 'utf8'));
  running.kill('SIGKILL');
  await expect.poll(() => isRunning(pid), { timeout: 20_000 }).toBe(false);
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test('bounds the memory of a process', async () => {
  const hungry = program('hungry', 'const kept = []; for (;;) kept.push(new Array(1e5).fill(kept.length));');
  await expect(createDocumentReader(createStepClock(), hungry).read(request, call)).rejects.toMatchObject({ code: 'payload_too_large' });
});

test('a process that ends without an answer, or cannot be run, is an answer too', async () => {
  const { read } = createDocumentReader(createStepClock(), program('silent', ''));
  await expect(read(request, call)).rejects.toMatchObject({ code: 'payload_too_large' });
  const gone = createDocumentReader(createStepClock(), pathToFileURL(join(folder, 'gone.mjs')));
  await expect(gone.read(request, call)).rejects.toMatchObject({ code: 'payload_too_large' });
  // More than a pipe takes, which nobody reads.
  await expect(read({ ...request, bytes: Buffer.alloc(4_000_000) }, call)).rejects.toMatchObject({ code: 'payload_too_large' });
});

test('keeps texts within its bounds and drops those used longest ago', () => {
  const cache = new TextCache();
  const document = (text: string) => ({ mimeType: 'text/plain', parts: [{ label: '', text }], truncated: false, notes: [] });
  for (let index = 0; index < 5; index += 1) cache.set(`k${index}`, document('x'.repeat(2_000_000)));
  expect(['k0', 'k1', 'k4'].map((key) => cache.get(key) !== undefined)).toEqual([false, true, true]);
});
