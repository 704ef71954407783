import { execFile, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onPostgres } from '@gatehouse/testkit/sql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root, startDaemon } from '../proving/lib/daemon.ts';
import { type Product, startProduct } from './lib/product.ts';

const run = promisify(execFile);

let product: Product;
beforeAll(async () => {
  product = await startProduct();
});
afterAll(() => product[Symbol.asyncDispose]());

const environment = () => ({
  PATH: process.env['PATH'] ?? '',
  HOME: product.home,
  GATEHOUSE_HOME: product.home,
  GATEHOUSE_URL: product.url,
  GATEHOUSE_TOKEN: product.token,
});

/** Runs the shipped command line as a user would. */
function gatehouse(...args: string[]) {
  return run(process.execPath, [join(root, 'dist/cli.js'), ...args], { env: environment(), timeout: 20_000 });
}

test('npx gatehouse in a clone runs the shipped command line', async () => {
  const { stdout } = await run('npx', ['gatehouse', 'call', 'system.ping'], { cwd: root, env: environment(), timeout: 30_000 });
  expect(stdout).toContain('pong');
});

test('gatehouse call system.ping', async () => {
  const { stdout } = await gatehouse('call', 'system.ping');
  expect(stdout).toContain('pong');
  const json = await gatehouse('call', '-o', 'json', 'session.list', '--kind', 'dm', '--limit', '5');
  expect(JSON.parse(json.stdout)).toMatchObject({ sessions: [], total: 0, limit: 5 });
});

test('gatehouse filters JSON by --jq', async () => {
  expect((await gatehouse('call', 'session.list', '--jq', '.sessions, .limit')).stdout).toBe('[]\n50\n');
  expect((await gatehouse('status', '--jq', '.health.status')).stdout).toBe('ok\n');
});

test('gatehouse call suggests the nearest method and exits with the usage code', async () => {
  const failure = await gatehouse('call', 'system.pin').catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: 2, stderr: expect.stringContaining('system.ping') });
});

test('gatehouse status', async () => {
  const { stdout } = await gatehouse('status');
  expect(stdout).toContain(String(product.daemon.pid));
});

test('gatehouse chat streams an answer', async () => {
  product.provider.queue({ text: ['Hello ', 'from ', 'the terminal.'] });
  const { stdout } = await gatehouse('chat', 'Say hello');
  expect(stdout).toContain('Hello from the terminal.');
});

test('gatehouse logs shows events live, and ends with Ctrl-C', async () => {
  const logs = spawn(process.execPath, [join(root, 'dist/cli.js'), 'logs', '--json', '--kinds', 'agent:hot_added,agent:hot_removed'], {
    env: environment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<number | null>((resolve) => logs.once('close', resolve));
  let shown = '';
  logs.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
  // Repeats the trigger until its event arrives, because only then the stream is open.
  await expect
    .poll(
      async () => {
        await product.call('agents.create', { agentId: 'seen-in-logs' });
        await product.call('agents.delete', { agentId: 'seen-in-logs' });
        return shown;
      },
      { timeout: 20_000, interval: 100 },
    )
    .toContain('agent:hot_removed');
  expect(JSON.parse(shown.split('\n')[0] ?? '')).toMatchObject({ id: expect.any(String), payload: { agentId: 'seen-in-logs' } });
  logs.kill('SIGINT');
  expect(await ended).toBe(130);
});

test('gatehouse sessions, agents, models and media', async () => {
  product.provider.queue({ text: 'Listed.' });
  await product.call('agent.execute', { message: 'Hello', sessionKey: 'listed:e2e' });
  expect((await gatehouse('sessions')).stdout).toContain('listed:e2e');
  expect((await gatehouse('sessions', 'show', 'listed:e2e')).stdout).toContain('  Listed.');
  await gatehouse('agents', 'create', 'listed');
  expect((await gatehouse('agents')).stdout).toMatch(/^default \(default\) [^]*^listed /m);
  await gatehouse('agents', 'delete', 'listed', '--yes');
  expect(await product.call('agents.list')).toMatchObject({ agents: ['default'] });
  expect((await gatehouse('models', '--json')).stdout).toContain('"modelId"');
  const id = (await gatehouse('media', 'upload', join(root, 'LICENSE'))).stdout.trim();
  expect((await gatehouse('media', 'download', id, '-')).stdout).toBe(await readFile(join(root, 'LICENSE'), 'utf8'));
  expect((await gatehouse('media', 'delete', id, '--yes', '--json')).stdout).toBe(`{"mediaId":"${id}","deleted":true}\n`);
});

test.skipIf(onPostgres)('a restored backup of a running daemon has the data from then and nothing newer', async () => {
  product.provider.queue({ text: 'Kept.' });
  await product.call('agent.execute', { message: 'before the backup', sessionKey: 'backup:e2e' });
  const file = join(product.home, 'backups', 'e2e.db');
  await gatehouse('backup', file);
  product.provider.queue({ text: 'Lost.' });
  await product.call('agent.execute', { message: 'after the backup', sessionKey: 'backup:e2e' });
  // The data of a running daemon can't be replaced.
  await expect(gatehouse('restore', '--yes', file)).rejects.toMatchObject({ stderr: expect.stringContaining('running') });
  await product.daemon.stop();
  await gatehouse('restore', '--yes', file);
  const again = await startDaemon({ home: product.home, port: product.port });
  try {
    expect(await product.call('session.history', { sessionKey: 'backup:e2e' })).toMatchObject({
      total: 2,
      messages: [{ content: 'before the backup' }, { content: 'Kept.' }],
    });
  } finally {
    await again.kill();
  }
});
