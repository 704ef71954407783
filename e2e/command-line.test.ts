import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root, startDaemon } from '../proving/lib/daemon.ts';
import { type Product, startProduct } from './lib/product.ts';

const run = promisify(execFile);

let product: Product;
beforeAll(async () => {
  product = await startProduct();
});
afterAll(() => product[Symbol.asyncDispose]());

/** Runs the shipped command line as a user would. */
function gatehouse(...args: string[]) {
  return run(process.execPath, [join(root, 'dist/cli.js'), ...args], {
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: product.home,
      GATEHOUSE_HOME: product.home,
      GATEHOUSE_URL: product.url,
      GATEHOUSE_TOKEN: product.token,
    },
    timeout: 20_000,
  });
}

test('gatehouse call system.ping', async () => {
  const { stdout } = await gatehouse('call', 'system.ping');
  expect(stdout).toContain('pong');
  const json = await gatehouse('call', '-o', 'json', 'session.list', '--kind', 'dm', '--limit', '5');
  expect(JSON.parse(json.stdout)).toMatchObject({ sessions: [], total: 0, limit: 5 });
});

test('gatehouse call names the nearest method and ends with the code of a usage error', async () => {
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

test('a backup of a running daemon, restored, holds what was there and not what came later', async () => {
  product.provider.queue({ text: 'Kept.' });
  await product.call('agent.execute', { message: 'before the backup', sessionKey: 'backup:e2e' });
  const file = join(product.home, 'backups', 'e2e.db');
  await gatehouse('backup', file);
  product.provider.queue({ text: 'Lost.' });
  await product.call('agent.execute', { message: 'after the backup', sessionKey: 'backup:e2e' });
  // While the daemon runs its data cannot be replaced.
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
