import { findPostgres } from '@gatehouse/testkit/postgres';
import { Client } from 'pg';
import { expect, test } from 'vitest';
import { systemClock } from '../../clock.ts';
import { silentLog } from '../../log.ts';
import { addNote, addPoint, crash, listTexts, migrations } from '../sqlite/testing/parts.ts';
import { guardStatement } from './guard.ts';
import { openPostgresDb } from './open-postgres.ts';
import { createTestDatabase } from './testing/test-database.ts';

test.runIf(findPostgres() !== undefined)('nothing is kept of a daemon after another one took over', async () => {
  await using database = await createTestDatabase(migrations);
  const client = new Client({ connectionString: database.url });
  await client.connect();
  await client.query('CREATE TABLE active_node (id bigint, boot_id text, fence bigint)');
  await client.query(`INSERT INTO active_node VALUES (1, 'me', 3)`);
  {
    await using db = await openPostgresDb({
      address: { url: database.url },
      workerUrl: new URL('./testing/worker.ts', import.meta.url),
      clock: systemClock,
      log: silentLog,
    });
    let fenced = 0;
    db.guard({ bootId: 'me', fence: 3 }, () => (fenced += 1));
    await Promise.all(['one', 'two', 'three'].map((text) => db.write(addNote, { text })));
    await db.telemetry(addPoint, { value: 1 });
    expect([await db.read(listTexts, undefined), fenced]).toEqual([['one', 'two', 'three'], 0]);

    await client.query(`UPDATE active_node SET fence = 4`);
    const late = [db.write(addNote, { text: 'four' }), db.write(addNote, { text: 'five' }), db.telemetry(addPoint, { value: 2 })];
    for (const outcome of await Promise.allSettled(late))
      expect(outcome).toMatchObject({ reason: { code: 'unavailable', message: 'Another node took over: this one stores nothing more' } });
    expect(fenced).toBeGreaterThan(0);
    expect((await client.query('SELECT value::int FROM point')).rows).toEqual([{ value: 1 }]);

    // Also by a thread that was started meanwhile.
    await client.query(`UPDATE active_node SET fence = 3`);
    await db.write(crash, undefined).catch(() => {});
    await expect.poll(() => db.write(addNote, { text: 'six' }).catch(() => undefined), { interval: 100 }).toEqual({ added: 'six' });
    await client.query(`UPDATE active_node SET boot_id = 'other'`);
    await expect(db.write(addNote, { text: 'seven' })).rejects.toMatchObject({ code: 'unavailable' });
    expect(await db.read(listTexts, undefined)).toEqual(['one', 'two', 'three', 'six']);
  }
  await client.end();
});

test('a guard is written into its statement only when it is one', () => {
  expect(guardStatement({ bootId: 'a-1', fence: 2 })).toContain(`boot_id = 'a-1' AND fence = 2 FOR SHARE`);
  expect(() => guardStatement({ bootId: `x' OR 'a' = 'a`, fence: 2 })).toThrow('not a guard');
  expect(() => guardStatement({ bootId: 'x', fence: 1.5 })).toThrow('not a guard');
});
