import { createStepClock } from '@gatehouse/testkit';
import { afterEach, expect, test } from 'vitest';
import { type CronServer, openCron } from '../testing/open-cron.ts';

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

const hourMs = 3_600_000;
const startMs = Date.UTC(2026, 8, 21, 12);

async function start(): Promise<CronServer> {
  const server = await openCron({ clock: createStepClock(startMs) });
  open.push(server);
  return server;
}

/** Adds an hourly bell, an occurrence without a model. */
const addBell = ({ client }: CronServer, name: string, everyMs = hourMs, anchorMs = startMs) =>
  client.call('cron.add', { name, schedule: { kind: 'every', everyMs, anchorMs }, payload: { kind: 'delivery', text: name } });
const hoursOf = async (server: CronServer, name: string, status: string) =>
  (await server.ended(name)).filter((run) => run.status === status).map(({ scheduledForMs }) => (scheduledForMs - startMs) / hourMs);

test('E16: the clock of a running daemon is set back by two hours: nothing is claimed twice, and a new job is not late', async () => {
  const server = await start();
  await addBell(server, 'bell');
  await server.pass(2 * hourMs + 60_000, 30_000);
  expect(await server.runs('bell', 2)).toHaveLength(2);
  server.clock.step(-2 * hourMs);
  await addBell(server, 'new', 10 * 60_000);
  await server.pass(hourMs, 30_000);
  expect(await hoursOf(server, 'bell', 'completed')).toEqual([2, 1]);
  expect((await server.runs('new', 6)).map(({ trigger }) => trigger)).toEqual(Array.from({ length: 6 }, () => 'scheduled'));
  await server.pass(2 * hourMs, 30_000);
  await server.runs('bell', 3);
  expect(await hoursOf(server, 'bell', 'completed')).toEqual([3, 2, 1]);
});

test('E16: set forward by three days: one run catches up, each missed time has a row; set right again, the job waits for it', async () => {
  const server = await start();
  await addBell(server, 'bell');
  await server.pass(hourMs + 60_000, 30_000);
  await server.runs('bell');
  server.clock.step(72 * hourMs);
  await server.pass(2 * 60_000, 10_000);
  await server.runs('bell', 73);
  expect(await hoursOf(server, 'bell', 'completed')).toEqual([73, 1]);
  expect(await hoursOf(server, 'bell', 'skipped')).toHaveLength(71);
  expect((await server.runs('bell', 73))[0]?.trigger).toBe('catchup');
  server.clock.step(-72 * hourMs);
  await server.pass(3 * hourMs, 60_000);
  expect(await hoursOf(server, 'bell', 'completed')).toEqual([73, 1]);
});

test('E16: a clock that was briefly ahead delays neither unaffected jobs nor later catch-up runs', async () => {
  const server = await start();
  for (let n = 0; n < 8; n += 1) await addBell(server, `bell ${n}`);
  await server.pass(50, 10);
  server.clock.step(72 * hourMs);
  // Jobs start five seconds apart, so only the first of them start before the clock is set right.
  await server.pass(62_000, 1_000);
  await expect.poll(() => hoursOf(server, 'bell 0', 'completed')).toEqual([72]);
  server.clock.step(-72 * hourMs);
  const all = async () => Promise.all(Array.from({ length: 8 }, (_, n) => hoursOf(server, `bell ${n}`, 'completed')));
  const waiting = (await all()).filter((hours) => hours.length === 0).length;
  expect(waiting).toBeGreaterThan(0);
  await server.pass(hourMs - 120_000, 30_000);
  await server.pass(120_000, 500);
  for (let n = 0; n < 8; n += 1) await server.runs(`bell ${n}`);
  expect((await all()).filter((hours) => hours.includes(1))).toHaveLength(waiting);
  // Times missed now are caught up with within minutes, not in three days.
  await addBell(server, 'next');
  server.clock.step(2 * hourMs);
  await server.pass(5 * 60_000, 5_000);
  await server.runs('next', 2);
  expect(await hoursOf(server, 'next', 'completed')).toEqual([3]);
});
