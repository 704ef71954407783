import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { createWakeGate, type WakeGateInput } from './wake-gate.ts';
import { judgeOutput } from './wake-gate-verdict.ts';

const input: WakeGateInput = {
  agentId: 'default',
  jobName: 'watch',
  scheduledForMs: Date.UTC(2026, 6, 1, 12),
  nowMs: Date.UTC(2026, 6, 1, 12, 5),
  timeZone: 'Asia/Kathmandu',
  lastRun: { status: 'completed', startedAtMs: 5 },
};
const realTime = (ms: number, run: () => void) => {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
};
const gate = createWakeGate({ after: realTime });
const run = (script: string, { language = 'js', timeoutMs = 20_000 }: { language?: 'js' | 'ts'; timeoutMs?: number } = {}) =>
  gate({ script, language, timeoutMs, input, signal: new AbortController().signal });

test.each([
  ['{"wake":true,"context":"3 new"}', { outcome: 'woke', context: '3 new' }],
  ['{"wake":true}', { outcome: 'woke' }],
  ['{"wake":false}', { outcome: 'skipped' }],
  ['{"wake":false,"deliver":"done","seen":4}', { outcome: 'skipped', deliver: 'done' }],
  ['looked at 4\n{"wake":false}\n\n  \n', { outcome: 'skipped' }],
  ['{"wake":false}\n2 mails', { outcome: 'woke', context: '{"wake":false}\n2 mails' }],
  ['HEARTBEAT_OK', { outcome: 'skipped' }],
  ['NO_REPLY nothing new', { outcome: 'skipped' }],
  ['[SILENT]', { outcome: 'skipped' }],
  ['  [SILENT] All is well.', { outcome: 'skipped', deliver: 'All is well.' }],
  ['', { outcome: 'woke' }],
  [' \n', { outcome: 'woke' }],
  ['HEARTBEAT_OKAY\n2 mails', { outcome: 'woke', context: 'HEARTBEAT_OKAY\n2 mails' }],
  ['{"wake":"yes"}', { outcome: 'failed_open', context: '{"wake":"yes"}', reason: expect.stringContaining('no decision') }],
  ['{wake}', { outcome: 'failed_open', context: '{wake}', reason: expect.stringContaining('no decision') }],
])('the last non-empty line decides: %j', (output, verdict) => {
  expect(judgeOutput(output, undefined)).toEqual({ logs: output.trimEnd(), ...verdict });
});

test.each([
  ['print("looked"); console.log({ wake: false, deliver: "done" })', { outcome: 'skipped', deliver: 'done' }],
  ['await null; print("[SILENT]", 5)', { outcome: 'skipped', deliver: '5' }],
  ['', { outcome: 'woke' }],
  ['print("seen"); throw new Error("boom")', { outcome: 'failed_open', context: 'seen', reason: 'Error: boom' }],
  ['await Promise.reject(new TypeError("late"))', { outcome: 'failed_open', reason: 'TypeError: late' }],
  ['this is not a script', { outcome: 'failed_open', reason: expect.any(String) }],
])('a script decides by what it prints: %s', async (script, verdict) => {
  expect(await run(script)).toEqual({ logs: expect.any(String), ...verdict });
});

test('a TypeScript script runs with its types stripped', async () => {
  const script =
    'interface Seen { count: number }\nconst seen: Seen = { count: input.lastRun!.startedAtMs };\nprint({ wake: seen.count > 9 } as const);';
  expect(await run(script, { language: 'ts' })).toMatchObject({ outcome: 'skipped' });
  expect(await run('enum Wrong { A }', { language: 'ts' })).toMatchObject({ outcome: 'failed_open', reason: expect.stringContaining('enum') });
});

test('a script receives its job and the fixed time of the run, and nothing else', async () => {
  const verdict = await run(`
    'use strict';
    const fails = (change) => { try { change(); return false; } catch { return true; } };
    const now = Date.now();
    for (let i = 0; i < 1e6; i += 1);
    print(JSON.stringify({
      input,
      frozen: [fails(() => { input.agentId = 'x'; }), fails(() => { input.lastRun.status = 'x'; }), fails(() => { globalThis.input = 1; }), fails(() => { print = 1; })],
      clock: [now, Date.now() - now, new Date().getHours(), new Date().getMinutes()],
      globals: Object.keys(globalThis).toSorted(),
      reach: ['process', 'require', 'fetch', 'setTimeout', 'WebAssembly', 'std', 'os', 'module'].filter((name) => name in globalThis),
    }));
    print('done');`);
  expect(JSON.parse(verdict.logs.split('\n')[0] ?? '')).toEqual({
    input,
    frozen: [true, true, true, true],
    // 17:50 in Kathmandu.
    clock: [input.nowMs, 0, 17, 50],
    globals: ['console', 'input', 'performance', 'print'],
    reach: [],
  });
});

test.each([
  ['a loop', 'for (;;) { try { for (;;); } catch {} }'],
  ['a loop of promises', 'const next = () => { Promise.resolve().then(next); }; next();'],
  ['an expression that backtracks', '/^(a+)+$/.test("a".repeat(60) + "!")'],
  ['a getter that loops in what is printed', 'print({ get a() { for (;;); } })'],
])('an endless script is terminated at its timeout and opens the gate: %s', async (_name, script) => {
  let timeOut = () => {};
  const timed = createWakeGate({
    after(_ms, then) {
      timeOut = then;
      return () => {};
    },
  });
  process.once('worker', (worker) => worker.once('message', () => timeOut()));
  const verdict = await timed({
    script: `print("begun"); ${script}`,
    language: 'js',
    timeoutMs: 1_200,
    input,
    signal: new AbortController().signal,
  });
  expect(verdict).toEqual({ outcome: 'failed_open', context: 'begun', logs: 'begun', reason: 'ran longer than 1200 ms' });
});

test.each([
  ['arrays', 'const a = []; for (;;) a.push(new Array(1000).fill("x"))'],
  ['buffers', 'const a = []; for (;;) a.push(new Uint8Array(1e6))'],
  ['one buffer', 'new ArrayBuffer(2 ** 31)'],
  ['text', 'let text = "x"; for (;;) text += text'],
  ['text of other text', 'const a = []; for (;;) a.push("y".repeat(1e6) + a.length)'],
  ['recursion', '(function again() { again(); })()'],
  ['recursion in JSON', 'let a = []; for (let i = 0; i < 1e6; i += 1) a = [a]; JSON.stringify(a)'],
  ['numbers', '2n ** (2n ** 40n)'],
  ['promises', 'const a = []; for (;;) a.push(new Promise(() => {}))'],
  ['source', 'eval("(".repeat(1e6))'],
  ['one long line', 'print("x".repeat(1e7))'],
  ['many lines', 'for (;;) try { print("x") } catch {}'],
  ['a promise that never settles', 'await new Promise(() => {})'],
  ['a module', 'await import("node:fs")'],
])('excessive resource use fails on its own and opens the gate: %s', async (_name, script) => {
  const endless = createWakeGate({ after: () => () => {} });
  const verdict = await endless({ script, language: 'js', timeoutMs: 15_000, input, signal: new AbortController().signal });
  expect(verdict.outcome).toBe('failed_open');
  expect(verdict.logs.length).toBeLessThanOrEqual(4_000);
});

test('prototype and constructor tricks do not escape the sandbox', async () => {
  const tricks = `
    Object.prototype.wake = true; Object.prototype.toJSON = () => ({ wake: true });
    Array.prototype.push = String.prototype.slice = Promise.prototype.then = null;
    JSON.stringify = JSON.parse = () => '{"wake":true}'; globalThis.String = null; Object.freeze = null;`;
  expect(await run(`${tricks} print('{"wake":false}')`)).toMatchObject({ outcome: 'skipped' });
  expect(
    await run(`print((0, eval)('this') === globalThis, print.constructor('return typeof process')(), new Function('return typeof require')())`),
  ).toMatchObject({
    context: 'true undefined undefined',
  });
  expect(await run(`print('{"__proto__":{"wake":false},"wake":true}')`)).toMatchObject({ outcome: 'failed_open' });
  expect({}).not.toHaveProperty('wake');
});

test('threads terminate and free their memory', async () => {
  const bomb = 'const a = []; try { for (;;) a.push(new Uint8Array(1e6)); } catch { for (;;); }';
  await run(bomb, { timeoutMs: 500 });
  const before = process.memoryUsage().rss;
  for (let round = 0; round < 4; round += 1) await Promise.all([1, 2].map(() => run(bomb, { timeoutMs: 300 })));
  expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
});

test('endless scripts of one agent occupy one thread, so that those of others run meanwhile', async () => {
  const ended: string[] = [];
  const timers = new Set<() => void>();
  const shared = createWakeGate({
    after(_ms, then) {
      timers.add(then);
      return () => void timers.delete(then);
    },
  });
  const runOf = async (agentId: string, script: string) => {
    await shared({ script, language: 'js', timeoutMs: 2_000, input: { ...input, agentId }, signal: new AbortController().signal });
    ended.push(agentId);
  };
  for (let n = 0; n < 3; n += 1) void runOf('greedy', 'for (;;);');
  await runOf('other', 'print("HEARTBEAT_OK")');
  expect(ended).toEqual(['other']);
  const timeOut = () => {
    for (const then of timers) then();
    return ended.length;
  };
  await expect.poll(timeOut).toBe(4);
});

test('a script runs for at most 30 seconds and waits at most 60 for a thread, whatever its job allows', async () => {
  const timers: { ms: number; run: () => void }[] = [];
  const bounded = createWakeGate({
    after(ms, then) {
      const timer = { ms, run: then };
      timers.push(timer);
      return () => void timers.splice(timers.indexOf(timer), 1);
    },
  });
  const loop = () => bounded({ script: 'for (;;);', language: 'js', timeoutMs: 300_000, input, signal: new AbortController().signal });
  const first = loop();
  await expect.poll(() => timers.map(({ ms }) => ms)).toEqual([30_000]);
  const second = loop();
  await expect.poll(() => timers.map(({ ms }) => ms)).toEqual([30_000, 60_000]);
  timers[1]?.run();
  expect(await second).toEqual({ outcome: 'failed_open', logs: '', reason: 'no thread became free in time' });
  timers[0]?.run();
  expect(await first).toMatchObject({ outcome: 'failed_open', reason: 'ran longer than 30000 ms' });
  expect(timers).toEqual([]);
});

test('stopping a job stops its script', async () => {
  const stop = new AbortController();
  const clock = createStepClock();
  const waits = createWakeGate({ after: (ms, then) => clock.after(ms, then) })({
    script: 'for (;;);',
    language: 'js',
    timeoutMs: 1_000,
    input,
    signal: stop.signal,
  });
  stop.abort();
  await expect(waits).rejects.toMatchObject({ code: 'cancelled' });
});

test('texts of a script are truncated', () => {
  const long = 'x'.repeat(10_000);
  expect(judgeOutput(JSON.stringify({ wake: true, context: long }), undefined).context).toHaveLength(4_000);
  expect(judgeOutput(`[SILENT] ${long}`, undefined).deliver).toHaveLength(4_000);
  expect(judgeOutput(long, 'broke')).toMatchObject({ outcome: 'failed_open', context: 'x'.repeat(4_000), reason: 'broke' });
});
