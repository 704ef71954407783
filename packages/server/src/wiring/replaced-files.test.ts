import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Health } from '@gatehouse/contract';
import { createStepClock, onPostgres, startTestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

let homeDir: string;
beforeEach(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-files-'));
});
afterEach(() => rm(homeDir, { recursive: true, force: true }));

// About the files of SQLite: with PostgreSQL there are none.
test.skipIf(onPostgres)('nothing is acknowledged into files that were removed or replaced, and the next start reports what happened', async () => {
  const clock = createStepClock();
  const file = join(homeDir, 'data', 'gatehouse.db');
  {
    await using server = await startTestServer({ clock, homeDir });
    // A busy machine degrades the whole as well.
    const look = async (status: string) => {
      await expect
        .poll(async () => {
          clock.advance(30_000);
          return ((await (await fetch(`${server.url}/health`)).json()) as Health).checks['storage']?.status;
        })
        .toBe(status);
    };
    const execute = () => server.client.call('agent.execute', { message: 'hello' });
    await execute();
    await look('ok');

    await rename(file, `${file}.away`);
    await look('degraded');
    const asked = server.provider.requests.length;
    await expect(execute()).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('gatehouse.db was removed') });
    await expect(server.client.call('tokens.create', { scopes: ['rpc'] })).rejects.toMatchObject({ code: 'unavailable' });
    expect(server.provider.requests).toHaveLength(asked);

    await writeFile(file, '');
    await look('degraded');
    await expect(execute()).rejects.toMatchObject({ message: expect.stringMatching(/gatehouse\.db was re(moved|placed)/) });

    await rename(`${file}.away`, file);
    await look('ok');
    await execute();
    await writeFile(`${file}-wal`, 'x'.repeat(8192));
    await look('degraded');
    await rm(file);
  }
  await using next = await startTestServer({ clock, homeDir });
  expect(next.server.warnings).toEqual([
    expect.stringMatching(/The last run ended after a fault.*gatehouse\.db-wal was overwritten/),
    expect.stringContaining('There was no database'),
  ]);
});
