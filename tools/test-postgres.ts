import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres, type TestPostgres } from '@gatehouse/testkit/postgres';

/**
 * Answers with the URL of one PostgreSQL for all files and workers of a test run. The first test that asks starts it, so that runs
 * without such tests do not.
 */
export async function setup(): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-pg-run-'));
  const path = join(folder, 'socket');
  let server: Promise<TestPostgres> | undefined;
  const listener = createServer((socket) => {
    socket.on('error', () => {});
    server ??= startPostgres();
    server.then(
      ({ url }) => socket.end(url()),
      (error: unknown) => socket.end(String(error)),
    );
  });
  await new Promise<void>((resolve) => listener.listen(path, resolve));
  process.env['GATEHOUSE_TEST_POSTGRES'] = path;
  return async () => {
    listener.close();
    await (await server?.catch(() => undefined))?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  };
}
