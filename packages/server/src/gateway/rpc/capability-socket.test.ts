import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, type StepClock } from '@gatehouse/testkit/step-clock';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { CapabilityRequest, ScriptCalls } from '../../features/delegation/orchestrate/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import { silentLog } from '../../kernel/log.ts';
import { createCapabilitySocket } from './capability-socket.ts';

let dir: string;
let file: string;
let clock: StepClock;
let asked: CapabilityRequest[];
let socket: AsyncDisposable;

const calls: ScriptCalls = {
  async admit(request) {
    asked.push(request);
    if (request.method === 'fail') throw new Error('a fault');
    if (request.method === 'busy') throw new AppError('rate_limited', 'later', { retryAfterMs: 70 });
    return { route: 'tool', run: async () => ({ text: request.method }) };
  },
};

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'gatehouse-socket-'));
  file = join(dir, 'capability.sock');
  clock = createStepClock();
  asked = [];
  // As a killed daemon leaves it.
  writeFileSync(file, '');
  socket = await createCapabilitySocket({ file, calls, dispatch: async () => undefined, clock, log: silentLog });
});
afterEach(async () => {
  await socket[Symbol.asyncDispose]();
  rmSync(dir, { recursive: true, force: true });
});

function open() {
  const { promise: answer, resolve } = Promise.withResolvers<unknown>();
  const connection = connect(file);
  let text = '';
  connection.setEncoding('utf8').on('data', (part: string) => (text += part));
  connection.on('error', () => resolve('refused')).on('close', () => resolve(text === '' ? 'closed' : JSON.parse(text)));
  return { answer, connection };
}

async function say(line: string): Promise<unknown> {
  const { answer, connection } = open();
  connection.write(line);
  return answer;
}
const line = (method: string, more: object = {}) => `${JSON.stringify({ bearer: 'b', method, ...more })}\n`;

test('accepts one line, answers it and closes; the file is private and removed with the socket', async () => {
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(await say(line('one', { params: { a: 1 }, operationId: 'op' }) + line('two'))).toEqual({ result: { text: 'one' } });
  expect(asked).toEqual([{ bearer: 'b', method: 'one', params: { a: 1 }, operationId: 'op' }]);
  expect(await say(line('fail'))).toEqual({ error: { code: 'internal', message: 'Internal error' } });
  expect(await say(line('busy'))).toEqual({ error: { code: 'rate_limited', message: 'later', retryAfterMs: 70 } });
  await socket[Symbol.asyncDispose]();
  expect(await say(line('late'))).toBe('refused');
});

test('a line that does not arrive, is too long or invalid has no effect', async () => {
  const slow = open();
  slow.connection.write('{"bearer":');
  await expect.poll(() => clock.pending()).toBe(1);
  clock.advance(5_000);
  expect(await slow.answer).toMatchObject({ error: { code: 'timeout', message: expect.stringContaining('5000 ms') } });
  expect(await say('x'.repeat(65_537))).toMatchObject({ error: { code: 'payload_too_large' } });
  expect(await say('[]\n')).toMatchObject({ error: { code: 'invalid_params' } });
  const ended = open();
  ended.connection.end('{}');
  expect(await ended.answer).toMatchObject({ error: { code: 'parse_error' } });
  expect(asked).toEqual([]);
});

test('limits concurrent connections', async () => {
  const held = Array.from({ length: 256 }, open);
  await expect.poll(() => clock.pending()).toBe(256);
  expect(['closed', 'refused']).toContain(await say(line('more')));
  for (const { connection } of held) connection.destroy();
  await Promise.all(held.map(({ answer }) => answer));
  await expect.poll(() => say(line('again'))).toEqual({ result: { text: 'again' } });
});

test('a client that gets an answer and does not close its side holds no slot', async () => {
  const held = Array.from({ length: 256 }, () => {
    const { promise: answered, resolve } = Promise.withResolvers<string>();
    const connection = connect({ path: file, allowHalfOpen: true });
    let text = '';
    connection.setEncoding('utf8').on('data', (part: string) => (text += part));
    connection.on('error', () => {}).on('end', () => resolve(text));
    connection.write(line('one'));
    return { answered, connection };
  });
  for (const { answered } of held) expect(JSON.parse(await answered)).toEqual({ result: { text: 'one' } });
  expect(['closed', 'refused']).toContain(await say(line('more')));
  clock.advance(5_000);
  await expect.poll(() => say(line('again'))).toEqual({ result: { text: 'again' } });
  for (const { connection } of held) connection.destroy();
});

test('a flooding client gets an error, and one that sends more than a line gets the answer to the line', async () => {
  expect(await say('x'.repeat(3_000_000))).toMatchObject({ error: { code: 'payload_too_large' } });
  expect(await say(line('one') + 'x'.repeat(3_000_000))).toEqual({ result: { text: 'one' } });
});
