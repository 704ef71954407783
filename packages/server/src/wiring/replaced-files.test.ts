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
test.skipIf(onPostgres)(
  'a write is refused by the first commit after the files were moved, and accepted work waits for them and runs once',
  async () => {
    const clock = createStepClock();
    process.stderr.write('T1 ' + Math.round(performance.now()) + '\n');
    const data = join(homeDir, 'data');
    process.stderr.write('T2 ' + Math.round(performance.now()) + '\n');
    // The periodic check of the files only runs with a step of the clock.
    await using server = await startTestServer({ clock, homeDir });
    process.stderr.write('T3 ' + Math.round(performance.now()) + '\n');
    await server.client.call('cron.add', { name: 'bell', schedule: { kind: 'in', seconds: 60 }, payload: { kind: 'agent_turn', message: 'ring' } });
    process.stderr.write('T4 ' + Math.round(performance.now()) + '\n');
    await rename(data, `${data}.away`);
    process.stderr.write('T5 ' + Math.round(performance.now()) + '\n');
    await expect(server.client.call('tokens.create', { scopes: ['rpc'] })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('gatehouse.db was removed'),
    });
    process.stderr.write('T6 ' + Math.round(performance.now()) + '\n');
    for (let step = 0; step < 12; step += 1) {
      clock.advance(10_000);
      await new Promise((done) => setTimeout(done, 10));
    }
    expect(server.provider.requests).toHaveLength(0);
    process.stderr.write('T7 ' + Math.round(performance.now()) + '\n');
    await rename(`${data}.away`, data);
    process.stderr.write('T8 ' + Math.round(performance.now()) + '\n');
    await expect.poll(() => (clock.advance(5_000), server.provider.requests.length)).toBe(1);
    process.stderr.write('T9 ' + Math.round(performance.now()) + '\n');
    for (let step = 0; step < 12; step += 1) {
      clock.advance(10_000);
      await new Promise((done) => setTimeout(done, 10));
    }
    expect(server.provider.requests).toHaveLength(1);
    process.stderr.write('T10 ' + Math.round(performance.now()) + '\n');
  },
);

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
