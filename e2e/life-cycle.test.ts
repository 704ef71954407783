import { chmod, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import { onPostgres } from '@gatehouse/testkit/sql';
import { describe, expect, test } from 'vitest';
import { spawnDaemon, startDaemon } from '../proving/lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from '../proving/lib/home.ts';
import { bearer, http } from '../proving/lib/http.ts';
import { openSocket } from '../proving/lib/rpc.ts';
import { eventually, type Product, startProduct } from './lib/product.ts';

const slow = { model: 'local/test-model', stream: true, messages: [{ role: 'user', content: 'slowly' }] };

/** A streamed completion that has started; `done` is its whole text. */
async function beginStream(product: Product): Promise<{ readonly done: Promise<string> }> {
  let begun: () => void = () => undefined;
  const first = new Promise<void>((resolve) => (begun = resolve));
  const done = http({
    port: product.port,
    path: '/v1/chat/completions',
    headers: bearer(product.token),
    body: slow,
    onData: () => begun(),
    timeoutMs: 30_000,
  }).then((reply) => reply.text);
  done.catch(() => undefined);
  await first;
  return { done };
}

/** No new work by any means: refused, or the connection not accepted. */
async function refusesWork(product: Product): Promise<boolean> {
  try {
    return (await http({ port: product.port, path: '/v1/models', headers: bearer(product.token) })).status === 503;
  } catch {
    return true;
  }
}

describe('SIGTERM', () => {
  test('lets running turns end, accepts no new ones, then exits with 0', async () => {
    await using product = await startProduct();
    const refused = Promise.withResolvers<void>();
    const beforeDelta = async (nth: number) => (nth === 1 ? refused.promise : undefined);
    product.provider.queue({ text: Array.from({ length: 20 }, (_, i) => `${i} `), beforeDelta });
    const stream = await beginStream(product);
    const socket = await openSocket({ port: product.port, token: product.token });
    product.daemon.child.kill('SIGTERM');
    expect(await eventually(() => refusesWork(product), 10_000)).toBe(true);
    refused.resolve();
    expect((await socket.closed).code).toBe(1001);
    const text = await stream.done;
    expect(text).toContain('"content":"19 "');
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true);
    expect(await product.daemon.exited).toEqual({ code: 0, signal: null });
  });

  test('stops immediately when sent twice', async () => {
    await using product = await startProduct();
    product.provider.queue({ text: Array.from({ length: 600 }, () => 'x '), paceMs: 50 });
    const stream = await beginStream(product);
    product.daemon.child.kill('SIGTERM');
    expect(await eventually(() => refusesWork(product), 10_000)).toBe(true);
    expect(product.daemon.child.exitCode).toBeNull();
    product.daemon.child.kill('SIGTERM');
    // The stream would last another 30 s.
    expect((await product.daemon.exited).code).not.toBe(0);
    await expect(stream.done).rejects.toThrow();
  });
});

test('conversations, agents and tokens survive a restart', async () => {
  await using product = await startProduct();
  product.provider.queue({ text: 'Remembered.' });
  await product.call('agent.execute', { message: 'Remember this.', sessionKey: 'restart:e2e' });
  await product.call('agents.create', { agentId: 'scout', config: { name: 'Scout', model: 'local/test-model', maxSteps: 7 } });
  await product.call('agents.suspend', { agentId: 'scout' });
  const { secret } = (await product.call('tokens.create', { id: 'ci', scopes: ['rpc'] })) as { secret: string };
  await product.restart();
  expect(await product.call('session.history', { sessionKey: 'restart:e2e' })).toMatchObject({
    messages: [{ content: 'Remember this.' }, { content: 'Remembered.' }],
  });
  expect(await product.call('agents.get', { agentId: 'scout' })).toMatchObject({ suspended: true, config: { maxSteps: 7 }, source: 'file' });
  const ping = await http({ port: product.port, path: '/rpc', headers: bearer(secret), body: { jsonrpc: '2.0', id: 1, method: 'system.ping' } });
  expect(JSON.parse(ping.text)).toMatchObject({ result: { pong: true } });
  product.provider.queue({ text: 'Of course.' });
  await product.call('agent.execute', { message: 'Do you?', sessionKey: 'restart:e2e' });
  const body = product.provider.requests.at(-1)?.body as { messages: { role: string; content: string }[] };
  expect(body.messages.filter((message) => message.role !== 'system').map((message) => message.content)).toEqual([
    'Remember this.',
    'Remembered.',
    'Do you?',
  ]);
});

test('agents stay paused after three consecutive crashes until a clean stop', async () => {
  await using product = await startProduct();
  const ready = { home: product.home, port: product.port };
  let daemon = product.daemon;
  for (let crash = 0; crash < 3; crash += 1) {
    await daemon.kill();
    daemon = await startDaemon(ready);
  }
  await expect(product.call('agent.execute', { message: 'hello' })).rejects.toMatchObject({ code: -32006 });
  expect(await product.call('system.ping')).toMatchObject({ pong: true });
  const health: unknown = JSON.parse((await http({ port: product.port, path: '/health' })).text);
  expect(health).toMatchObject({ status: 'degraded', checks: { turns: { status: 'failed' } } });
  await daemon.stop();
  daemon = await startDaemon(ready);
  expect(await product.call('agent.execute', { message: 'hello' })).toMatchObject({ finishReason: 'stop' });
  await daemon.stop();
});

describe.concurrent('a start that cannot succeed says why and exits', () => {
  async function failedStart(prepare: (home: string, port: number) => Promise<void> | void) {
    const home = await makeHome();
    const port = await freePort();
    await writeConfig(home, {});
    await prepare(home, port);
    const daemon = spawnDaemon({ home, port });
    const timer = setTimeout(() => void daemon.kill(), 60_000);
    const { code } = await daemon.exited;
    clearTimeout(timer);
    await removeHome(home);
    return { code, text: `${daemon.stdout()}${daemon.stderr()}` };
  }

  test('a configuration with an unknown key: file, line, key and the nearest one', async ({ expect: expected }) => {
    const { code, text } = await failedStart((home) => writeFile(join(home, 'config.yaml'), 'gateway:\n  host: 127.0.0.1\n  prot: 4766\n'));
    expected(code).toBeGreaterThan(0);
    expected(text).toMatch(/config\.yaml:3/);
    expected(text).toContain('prot');
    expected(text).toContain('port');
  });

  test('a variable that is not set', async ({ expect: expected }) => {
    const { code, text } = await failedStart((home) =>
      writeFile(join(home, 'config.yaml'), 'gateway:\n  tokens:\n    - { id: ops, secret: "${NO_SUCH_VARIABLE}", scopes: ["*"] }\n'),
    );
    expected(code).toBeGreaterThan(0);
    expected(text).toContain('NO_SUCH_VARIABLE');
  });

  test('a home that others can read', async ({ expect: expected }) => {
    const { code, text } = await failedStart((home) => chmod(home, 0o755));
    expected(code).toBeGreaterThan(0);
    expected(text).toMatch(/0?700|chmod/);
  });

  test('a port that is taken', async ({ expect: expected }) => {
    const blocker = createServer();
    const { code, text } = await failedStart((_home, port) => new Promise<void>((resolve) => blocker.listen(port, '127.0.0.1', resolve)));
    await new Promise((resolve) => blocker.close(resolve));
    expected(code).toBeGreaterThan(0);
    expected(text).toMatch(/port|in use|taken/i);
  });

  test.skipIf(onPostgres)('a database that is damaged', async ({ expect: expected }) => {
    const home = await makeHome();
    const port = await freePort();
    await writeConfig(home, {});
    const daemon = await startDaemon({ home, port });
    await daemon.stop();
    await writeFile(join(home, 'data', 'gatehouse.db'), Buffer.alloc(8192, 7));
    const again = spawnDaemon({ home, port });
    const { code } = await again.exited;
    expected(code).toBeGreaterThan(0);
    expected(again.stderr() + again.stdout()).toMatch(/damaged|restore/i);
    await removeHome(home);
  });

  test('a second daemon on the same home', async ({ expect: expected }) => {
    const home = await makeHome();
    await writeConfig(home, {});
    const daemon = await startDaemon({ home, port: await freePort() });
    const second = spawnDaemon({ home, port: await freePort() });
    const { code } = await second.exited;
    expected(code).toBeGreaterThan(0);
    expected(second.stderr() + second.stdout()).toContain(String(daemon.pid));
    await daemon.kill();
    await removeHome(home);
  });
});
