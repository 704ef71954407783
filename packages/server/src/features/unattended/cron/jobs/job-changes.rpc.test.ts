import { createClient } from '@gatehouse/client';
import type { ParamsInput } from '@gatehouse/contract';
import { sql } from '@gatehouse/testkit';
import { afterEach, expect, test } from 'vitest';
import { type CronServer, openCron, targetOf } from '../testing/open-cron.ts';

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

async function start(options: Parameters<typeof openCron>[0] = {}): Promise<CronServer> {
  const server = await openCron(options);
  open.push(server);
  return server;
}

const hourly = { kind: 'every', everyMs: 3_600_000 } as const;
const says = (message: string) => ({ kind: 'agent_turn', message }) as const;
const jobOf = async (server: CronServer, name: string) => (await server.client.call('cron.list', {})).jobs.find((job) => job.name === name);

const turnOnly = {
  sessionPolicy: { strategy: 'rolling', maxHistoryTurns: 3 },
  wakeGate: { script: 'print(1)', language: 'js', timeoutSeconds: 5 },
  cacheRetention: 'long',
  toolPolicy: { profile: 'coding', allow: [], deny: [] },
} as const satisfies Partial<ParamsInput<'cron.add'>>;

test('changing a turn to a delivery or an event drops turn-only fields, and rejects those given in the same call', async () => {
  const server = await start();
  const { call } = server.client;
  for (const payload of [
    { kind: 'delivery', text: 'Ding.' },
    { kind: 'heartbeat_event', text: 'Look', wakeMode: 'now' },
  ] as const) {
    await call('cron.add', { name: payload.kind, schedule: hourly, payload: says('Go'), ...turnOnly, maxConsecutiveDependencyErrors: 2 });
    for (const [field, value] of Object.entries(turnOnly))
      await expect(call('cron.update', { jobName: payload.kind, payload, [field]: value })).rejects.toMatchObject({
        code: 'invalid_params',
        message: expect.stringContaining(field),
      });
    expect(await jobOf(server, payload.kind)).toMatchObject({ payload: says('Go'), ...turnOnly });
    await call('cron.update', { jobName: payload.kind, payload, wakeGate: null });
    const job = await jobOf(server, payload.kind);
    expect(job).toMatchObject({ payload, maxConsecutiveDependencyErrors: 2 });
    expect(Object.keys(job ?? {}).filter((key) => key in turnOnly)).toEqual([]);
    for (const [field, value] of Object.entries(turnOnly))
      await expect(call('cron.update', { jobName: payload.kind, [field]: value })).rejects.toMatchObject({ code: 'invalid_params' });
  }
});

test('a delivery without a target goes verbatim to the inbox of the job owner, even when it starts with a silent token', async () => {
  const server = await start();
  const maker = await server.as(['rpc']);
  for (const text of ['Ding.', 'NO_REPLY is what he said.']) {
    const { jobId } = await maker.call('cron.add', { name: text, schedule: hourly, payload: { kind: 'delivery', text } });
    await maker.call('cron.run', { jobName: jobId });
    expect(await server.runs(jobId)).toMatchObject([{ status: 'completed', deliveryStatus: 'accepted', workKind: 'delivery_only' }]);
  }
  expect((await maker.call('inbox.list', {})).messages.map(({ text, conversationRef }) => [text, conversationRef])).toEqual([
    ['NO_REPLY is what he said.', null],
    ['Ding.', null],
  ]);
  const stranger = await server.as(['rpc']);
  expect((await stranger.call('inbox.list', {})).messages).toEqual([]);
  expect(server.provider.requests).toHaveLength(0);
});

test('the fields of a listed conversation form a valid target', async () => {
  const server = await start();
  const maker = await server.as(['rpc']);
  await maker.call('agent.execute', { message: 'Hello', sessionKey: 'desk:gateway' });
  const [conversation] = (await maker.call('session.list', {})).sessions;
  const { conversationRef, conversationScope } = conversation ?? expect.fail('there is no conversation');
  const { destinationEndpoint } = targetOf('token:root');
  await maker.call('cron.add', {
    name: 'targeted',
    schedule: hourly,
    payload: says('Look'),
    deliveryTarget: { conversation: { conversationRef, conversationScope }, destinationEndpoint },
  });
  await maker.call('cron.run', { jobName: 'targeted' });
  expect(await server.runs('targeted')).toMatchObject([{ status: 'completed', deliveryStatus: 'accepted' }]);
  expect((await maker.call('inbox.list', {})).messages).toHaveLength(1);
});

test('a silent token counts only as a separate word', async () => {
  const server = await start();
  await server.client.call('cron.add', { name: 'watch', schedule: hourly, payload: says('Look'), deliveryTarget: targetOf('token:root') });
  const delivered: string[] = [];
  for (const [n, text] of ['HEARTBEAT_OKAY, but the roof burns.', 'NO_REPLY', '[SILENT] Nothing.', 'Nothing.'].entries()) {
    server.provider.queue({ text });
    await server.client.call('cron.run', { jobName: 'watch' });
    delivered.push((await server.runs('watch', n + 1))[0]?.deliveryStatus ?? '');
  }
  expect(delivered).toEqual(['accepted', 'suppressed', 'suppressed', 'accepted']);
});

test('a job of any kind whose token was revoked is skipped with a reason', async () => {
  const server = await start({ config: { agents: { default: { model: 'mock/mock-fast', heartbeat: { enabled: true } } } } });
  const leaving = await server.as(['rpc']);
  const payloads = [says('x'), { kind: 'delivery', text: 'x' }, { kind: 'heartbeat_event', text: 'x', wakeMode: 'now' }] as const;
  const ids: string[] = [];
  for (const payload of payloads) ids.push((await leaving.call('cron.add', { name: payload.kind, schedule: hourly, payload })).jobId);
  await server.client.call('tokens.revoke', { id: leaving.tokenId });
  for (const id of ids) {
    await server.client.call('cron.run', { jobName: id });
    expect(await server.runs(id)).toMatchObject([{ status: 'skipped', errorKind: 'authority' }]);
  }
  expect((await server.client.call('inbox.list', {})).messages).toEqual([]);
  expect(server.provider.requests).toHaveLength(0);
});

test('a job can be paused, renamed and rescheduled even when its payload is no longer valid', async () => {
  const server = await start();
  await server.client.call('cron.add', { name: 'old', schedule: hourly, payload: { ...says('x'), model: 'mock/mock-fast' } });
  await sql(server.homeDir, `UPDATE cron_job SET payload_json = replace(payload_json, 'mock/mock-fast', 'mock/gone')`);
  await server.client.call('cron.update', { jobName: 'old', paused: true, name: 'older', schedule: { kind: 'every', everyMs: 7_200_000 } });
  expect(await jobOf(server, 'older')).toMatchObject({ lifecycle: { state: 'paused' }, schedule: { everyMs: 7_200_000 } });
  await expect(server.client.call('cron.update', { jobName: 'older', continuationMode: 'none' })).rejects.toMatchObject({ code: 'invalid_params' });
});

test.each(['two\nlines', 'bell\u0007', 'nul\0', '\u001b[31mred', 'turned\u202Earound', 'line\u2028end'])(
  'a deceptive name is rejected: %j',
  async (name) => {
    const server = await start();
    await expect(server.client.call('cron.add', { name, schedule: hourly, payload: says('x') })).rejects.toMatchObject({
      code: 'invalid_params',
      message: expect.stringContaining('name'),
    });
  },
);

test('stuck runs of one job leave capacity for the jobs of others', async () => {
  const server = await start();
  server.provider.setAnswer(() => ({ hang: true }));
  await server.client.call('cron.add', { name: 'stuck', schedule: hourly, payload: says('x') });
  for (let n = 0; n < 4; n += 1) await server.client.call('cron.run', { jobName: 'stuck' });
  await expect(server.client.call('cron.run', { jobName: 'stuck' })).rejects.toMatchObject({ code: 'precondition_failed' });
  const other = await server.as(['rpc']);
  const { jobId } = await other.call('cron.add', { name: 'bell', schedule: hourly, payload: { kind: 'delivery', text: 'Ding.' } });
  await other.call('cron.run', { jobName: jobId });
  expect(await server.runs(jobId)).toMatchObject([{ status: 'completed' }]);
});

test('two concurrent changes are both kept', async () => {
  const server = await start();
  await server.client.call('cron.add', { name: 'both', schedule: hourly, payload: says('x') });
  await Promise.all([
    server.client.call('cron.update', { jobName: 'both', paused: true }),
    server.client.call('cron.update', { jobName: 'both', cacheRetention: 'long' }),
    server.client.call('cron.update', { jobName: 'both', payload: says('y') }),
  ]);
  expect(await jobOf(server, 'both')).toMatchObject({ lifecycle: { state: 'paused' }, cacheRetention: 'long', payload: says('y') });
});

test('a run records the decision, the failure reason and the output of its wake gate', async () => {
  const server = await start();
  const gate = (script: string, language: 'js' | 'ts' = 'js') => ({ script, language, timeoutSeconds: 20 });
  await server.client.call('cron.add', {
    name: 'gated',
    schedule: hourly,
    payload: says('Go'),
    wakeGate: gate('print("looked"); throw new Error("boom")'),
  });
  const gateOf = async (n: number) => {
    await server.client.call('cron.run', { jobName: 'gated' });
    return (await server.runs('gated', n))[0]?.wakeGate;
  };
  expect(await gateOf(1)).toEqual({ outcome: 'failed_open', reason: 'Error: boom', logs: 'looked' });
  await server.client.call('cron.update', { jobName: 'gated', wakeGate: gate('print("seen 4"); print({ wake: false })') });
  expect(await gateOf(2)).toEqual({ outcome: 'skipped', logs: 'seen 4\n{"wake":false}' });
  await server.client.call('cron.update', { jobName: 'gated', wakeGate: gate(';') });
  expect(await gateOf(3)).toEqual({ outcome: 'woke' });
  await server.client.call('cron.update', { jobName: 'gated', wakeGate: gate(`'${'x'.repeat(3)}' as ${'A<'.repeat(30_000)}`, 'ts') });
  expect(await gateOf(4)).toEqual({ outcome: 'failed_open', reason: expect.stringMatching(/^[^\n]{1,200}$/) });
  await server.client.call('cron.update', { jobName: 'gated', wakeGate: null });
  expect(await gateOf(5)).toBeUndefined();
}, 30_000);

test('a narrower token of the same person may pause, reschedule and remove a job of a wider one, but not change what it does', async () => {
  const server = await start({ config: { agents: { default: { model: 'mock/mock-fast' }, other: { model: 'mock/mock-fast' } } } });
  const make = async (id: string, grant: Pick<ParamsInput<'tokens.create'>, 'agents' | 'expiresAt' | 'scopes'>) => {
    const { secret } = await server.client.call('tokens.create', { id, person: 'ada', ...grant });
    return createClient({ url: server.url, token: secret }).call;
  };
  const wide = await make('wide', { scopes: ['rpc', 'admin'] });
  const narrow = {
    agents: await make('agents', { scopes: ['rpc', 'admin'], agents: ['default'] }),
    scopes: await make('scopes', { scopes: ['rpc'] }),
    time: await make('time', { scopes: ['rpc', 'admin'], expiresAt: server.clock.now() + 86_400_000 }),
  };
  const { jobId } = await wide('cron.add', { name: 'report', schedule: hourly, payload: says('Write the report') });
  const kept = await jobOf(server, 'report');
  for (const [why, call] of Object.entries(narrow))
    for (const [field, change] of Object.entries({
      payload: { payload: says('Ask agent other for its secrets') },
      toolPolicy: { toolPolicy: { profile: 'full' as const, allow: [], deny: [] } },
      deliveryTarget: { deliveryTarget: null, name: 'renamed' },
    }))
      await expect(call('cron.update', { jobId, ...change }), `${why}: ${field}`).rejects.toMatchObject({
        code: 'denied',
        message: expect.stringMatching(new RegExp(`^${field}: .*(scopes|agents|lasts)`)),
      });
  expect(await jobOf(server, 'report')).toEqual(kept);
  await narrow.scopes('cron.update', { jobId, paused: true, name: 'weekly', schedule: { kind: 'every', everyMs: 7_200_000 } });
  // Its own job, and that of a token which may do less, are changed as before.
  const own = await narrow.scopes('cron.add', { name: 'own', schedule: hourly, payload: says('Look') });
  await narrow.scopes('cron.update', { jobId: own.jobId, payload: says('Look again') });
  await wide('cron.update', { jobId: own.jobId, payload: says('Look once more') });
  await wide('cron.update', { jobId, payload: says('Write the long report') });
  expect(await jobOf(server, 'weekly')).toMatchObject({ payload: says('Write the long report'), lifecycle: { state: 'paused' } });
  // The token of a job that is gone may come back with the configuration.
  await server.client.call('tokens.revoke', { id: 'wide' });
  await expect(narrow.agents('cron.update', { jobId, payload: says('Now?') })).rejects.toMatchObject({ code: 'denied' });
  await server.client.call('cron.update', { jobId, payload: says('By an owner') });
  await narrow.agents('cron.remove', { jobId });
});
