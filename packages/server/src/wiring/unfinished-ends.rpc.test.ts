import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, onPostgres, sql, type StepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CronServer, openCron, targetOf } from '../features/unattended/cron/testing/open-cron.ts';
import { queueSystemEvent } from '../features/unattended/heartbeat/testing/queue-system-event.ts';

let homeDir: string;
let clock: StepClock;
let server: CronServer;
beforeEach(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-ends-'));
  clock = createStepClock(Date.UTC(2026, 8, 21, 12));
  const dir = join(homeDir, 'workspaces', 'default');
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, 'HEARTBEAT.md'), '- Look\n');
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true, force: true });
});

async function start() {
  server = await openCron({
    homeDir,
    clock,
    config: { agents: { default: { model: 'mock/mock-fast', heartbeat: { enabled: true, intervalMs: 24 * 3_600_000 } } } },
  });
}
async function restart() {
  await server[Symbol.asyncDispose]();
  await start();
}
const rows = (text: string) => sql(homeDir, text);
/** The storage refuses some writes from here on, as if the process had died before them. */
async function refuse(what: string, when = 'true'): Promise<void> {
  if (!onPostgres) return void (await rows(`CREATE TRIGGER refused BEFORE ${what} WHEN ${when} BEGIN SELECT RAISE(ABORT, 'refused'); END`));
  const body = `BEGIN IF ${when} THEN RAISE EXCEPTION 'refused'; END IF; RETURN COALESCE(NEW, OLD); END`;
  await rows(`CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS '${body.replaceAll("'", "''")}'`);
  await rows(`CREATE TRIGGER refused BEFORE ${what} FOR EACH ROW EXECUTE FUNCTION refused()`);
}
const allow = () => rows(onPostgres ? 'DROP FUNCTION refused() CASCADE' : 'DROP TRIGGER refused');
const workState = (kind: string) => rows(`SELECT state FROM work_item WHERE kind = '${kind}'`);
const inbox = async () => (await server.client.call('inbox.list', {})).messages.map(({ level, text }) => `${level}: ${text}`);
const beats = async () => (await server.client.call('heartbeat.states')).agents[0];

test.each([
  ['nothing at all', 'DELETE ON heartbeat_beat', 'true'],
  [
    'successes, but not failures',
    'UPDATE ON heartbeat_state',
    `NEW.consecutive_errors = 0 AND EXISTS (SELECT 1 FROM work_item WHERE kind = 'heartbeat' AND state = 'done')`,
  ],
])(
  'a beat whose turn is committed and whose end is not is ended by the next start, once, without a model: storage keeps %s',
  async (_, writes, when) => {
    await start();
    await queueSystemEvent(homeDir, { agentId: 'default', text: 'The mail came.', atMs: clock.now() });
    await refuse(writes, when);
    server.provider.queue({ text: 'One mail.' });
    const { admission } = await server.client.call('heartbeat.trigger', { agentId: 'default' });
    const ended = server.heard('scheduler:heartbeat_wake_terminal');
    clock.advance(250);
    await expect.poll(() => workState('heartbeat')).toEqual([{ state: 'done' }]);
    await expect.poll(() => (clock.advance(1), ended.length)).toBeLessThanOrEqual(1);
    expect(await inbox()).toEqual([]);
    await server[Symbol.asyncDispose]();
    await allow();
    await start();
    expect(await inbox()).toEqual(['info: One mail.']);
    expect(await beats()).toMatchObject({ queuedEvents: 0, consecutiveErrors: 0, tickStartedAtMs: null });
    expect(await rows('SELECT * FROM heartbeat_beat')).toEqual([]);
    await restart();
    expect(await inbox()).toEqual(['info: One mail.']);
    expect(server.provider.served()).toBe(0);
    expect(admission.correlationId).toMatch(/^hw_/);
  },
);

test('a beat whose end is refused by the storage is reported once, when the storage accepts it', async () => {
  await start();
  await refuse('DELETE ON heartbeat_beat');
  server.provider.queue({ text: 'One mail.' });
  const { admission } = await server.client.call('heartbeat.trigger', { agentId: 'default' });
  const ended = server.heard('scheduler:heartbeat_wake_terminal');
  clock.advance(250);
  await expect.poll(() => workState('heartbeat')).toEqual([{ state: 'done' }]);
  await server.client.call('heartbeat.states');
  for (let n = 0; n < 5; n += 1) {
    clock.advance(1_000);
    await server.client.call('heartbeat.states');
  }
  expect(ended).toEqual([]);
  await allow();
  await expect.poll(async () => (clock.advance(60_000), await inbox())).toEqual(['info: One mail.']);
  await expect.poll(() => ended).toMatchObject([{ correlationId: admission.correlationId, status: 'settled' }]);
  expect(await rows('SELECT * FROM heartbeat_beat')).toEqual([]);
});

test('a beat whose turn failed for good just before the daemon stopped is reported, stops the beats, and keeps its events', async () => {
  await start();
  await queueSystemEvent(homeDir, { agentId: 'default', text: 'The mail came.', atMs: clock.now() });
  await refuse('DELETE ON heartbeat_beat');
  server.provider.queue({ status: 401 });
  await server.client.call('heartbeat.trigger', { agentId: 'default' });
  clock.advance(250);
  await expect.poll(() => workState('heartbeat')).toEqual([{ state: 'failed' }]);
  await server[Symbol.asyncDispose]();
  await allow();
  await start();
  expect(await beats()).toMatchObject({ stoppedBy: 'auth', queuedEvents: 1, nextDueAtMs: null });
  expect(await inbox()).toEqual([expect.stringMatching(/^alert: .* is stopped until/)]);
});

test('a job run whose end is refused by the storage commits nothing of its turn, and ends once when the storage accepts it', async () => {
  await start();
  await server.client.call('cron.add', {
    name: 'report',
    schedule: { kind: 'every', everyMs: 86_400_000 },
    payload: { kind: 'agent_turn', message: 'Report' },
    deliveryTarget: targetOf('token:root'),
  });
  await refuse('UPDATE ON cron_occurrence', 'NEW.terminal_at_ms IS NOT NULL');
  server.provider.queue({ text: 'All is well.' }, { text: 'All is well.' });
  await server.client.call('cron.run', { jobName: 'report' });
  // Returned to the queue, for a retry.
  await expect.poll(() => workState('cron')).toEqual([{ state: 'accepted' }]);
  expect(await inbox()).toEqual([]);
  expect(await rows('SELECT * FROM turn WHERE ended_at_ms IS NOT NULL')).toEqual([]);
  await server[Symbol.asyncDispose]();
  await allow();
  await start();
  server.provider.queue({ text: 'All is well.' });
  clock.advance(60_000);
  expect(await server.runs('report')).toMatchObject([{ status: 'completed', deliveryStatus: 'accepted' }]);
  const [message] = await inbox();
  expect(message).toContain('All is well.');
  await restart();
  expect(await inbox()).toHaveLength(1);
});

test('a job run that was left without an end although its work is over ends as unknown', async () => {
  await start();
  await server.client.call('cron.add', {
    name: 'report',
    schedule: { kind: 'every', everyMs: 86_400_000 },
    payload: { kind: 'agent_turn', message: 'Report' },
  });
  await server.client.call('cron.run', { jobName: 'report' });
  await server.runs('report');
  await server[Symbol.asyncDispose]();
  await rows(`UPDATE cron_occurrence SET terminal_at_ms = NULL, status = 'started'`);
  await start();
  expect(await server.runs('report')).toMatchObject([{ status: 'unknown', errorKind: 'owner_lost', deliveryStatus: 'not_requested' }]);
});
