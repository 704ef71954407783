import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { createUser } from '../testing/test-io.ts';

/** Creates a user of a real server in this process, with the server's clock. */
async function open(options: Parameters<typeof startTestServer>[0] = {}) {
  const server = await startTestServer(options);
  const user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token };
  return {
    server,
    run: (...args: string[]) => user.run({ args, env, io: { now: () => Date.now() } }),
    file: async (name: string, content: string) => {
      await mkdir(user.dir, { recursive: true });
      await writeFile(join(user.dir, name), content);
    },
    async [Symbol.asyncDispose]() {
      await user[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

const cells = (out: string) =>
  out
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/));
const rowOf = (out: string, name: string) => cells(out).find(([first]) => first === name);

test('cron: a job is added, listed, changed, paused, resumed, run and removed', async () => {
  await using session = await open();
  const { run, server } = session;
  const added = await run('cron', 'add', 'report', '--cron', '0 8 * * 1-5', '--tz', 'Europe/Berlin', '--message', 'What is due?', '--history', '3');
  expect(added.out).toMatch(/^Added report, 0 8 \* \* 1-5 \(Europe\/Berlin\): cj_/);
  const id = added.out.trim().split(' ').at(-1) ?? '';
  expect(rowOf((await run('cron')).out, 'report')).toEqual([
    'report',
    'default',
    '0 8 * * 1-5 (Europe/Berlin)',
    expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:00:00 UTC$/),
    'scheduled',
    'turn: What is due?',
    id,
  ]);
  expect((await run('cron', 'update', 'report', '--every', '90s', '--fresh')).out).toBe('Changed report.\n');
  expect((await run('cron', 'add', 'mail', '--in', '90s', '--event', 'Look at the mail', '--now')).code).toBe(0);
  expect(rowOf((await run('cron', 'list')).out, 'mail')?.slice(5, 6)).toEqual(['event: Look at the mail']);
  expect(rowOf((await run('cron', 'list')).out, 'report')?.slice(2, 3)).toEqual(['every 1 min']);
  expect((await run('cron', 'pause', id)).out).toBe('Paused report.\n');
  expect(rowOf((await run('cron', 'list')).out, 'report')?.slice(3, 5)).toEqual(['-', 'paused']);
  expect((await run('cron', 'resume', 'report')).out).toBe('Resumed report.\n');
  expect((await run('cron', 'update', 'report', '--message', 'Say hello', '--max-errors', '2')).code).toBe(0);
  server.provider.queue({ text: 'Hello' });
  expect((await run('cron', 'run', 'report')).out).toMatch(/^Started report: ce_/);
  await expect.poll(async () => cells((await run('cron', 'runs', 'report')).out)[1]?.[2]).toBe('completed');
  expect(cells((await run('cron', 'runs', 'report')).out)[1]?.[1]).toBe('manual');
  expect((await run('cron', 'run', '--due')).out).toBe('Started 0 overdue jobs.\n');
  expect((await run('cron', 'update', 'report', '--clear', 'max-errors')).code).toBe(0);
  const status = (await run('cron', 'status')).out;
  expect(status).toMatch(/^agent +default\nstate +active\njobs +\d+\n/);
  expect(status).toMatch(/\nstore +\d+ bytes, [0-9a-f]{64}\n/);
  expect(await run('cron', 'remove', 'report')).toMatchObject({ code: 2, err: expect.stringContaining('--yes') });
  expect((await run('cron', 'remove', 'report', '-y')).out).toBe('Removed report.\n');
  expect(rowOf((await run('cron', 'list')).out, 'report')).toBeUndefined();
});

test('cron: a message without its flag, and a misspelled job, are named in the error', async () => {
  await using session = await open();
  const { run } = session;
  expect(await run('cron', 'add', 'report', 'What is due?', '--every', '1h')).toMatchObject({
    code: 2,
    err: expect.stringMatching(/^error: Too many arguments after the name report\.\nhint: .*--message "…"/),
  });
  await run('cron', 'add', 'morning report', '--every', '1h', '--message', 'What is due?');
  const unknown = 'error: There is no job "morning rport".\nhint: Did you mean "morning report"?\n';
  for (const verb of ['run', 'runs', 'pause', 'resume'])
    expect(await run('cron', verb, 'morning rport'), verb).toMatchObject({ code: 1, out: '', err: unknown });
  expect((await run('cron', 'update', 'morning rport', '--fresh')).err).toBe(unknown);
  expect((await run('cron', 'remove', 'morning rport', '-y')).err).toBe(unknown);
  expect((await run('cron', 'run', 'zebra')).err).toContain('hint: `gatehouse cron list` lists the jobs.');
  expect((await run('cron', 'run', 'morning rport', '--agent', 'nobody')).err).toContain('nobody');
  expect(JSON.parse((await run('cron', 'run', 'zebra', '--json')).err)).toMatchObject({ error: { code: 'not_found' } });
});

test('cron: the times of a range are listed, confirmed and run', async () => {
  await using session = await open();
  const { run } = session;
  await run('cron', 'add', 'bell', '--cron', '0 8 * * *', '--tz', 'UTC', '--deliver', 'Ding');
  const range = ['--from', '2026-01-01T00:00Z', '--to', '2026-01-03T00:00Z'];
  const listed = 'Times of bell that have not run:\n  2026-01-01 08:00:00 UTC\n  2026-01-02 08:00:00 UTC\nEstimated cost: $0.\n';
  expect(await run('cron', 'backfill', 'bell', ...range, '--dry-run')).toEqual({ code: 0, out: listed, err: '' });
  // Without a terminal nobody can confirm.
  expect(await run('cron', 'backfill', 'bell', ...range)).toMatchObject({ code: 2, out: '', err: expect.stringContaining(listed) });
  expect((await run('cron', 'runs', 'bell')).out).toBe('No runs yet.\n');
  expect((await run('cron', 'backfill', 'bell', ...range, '--limit', '1', '-y')).out).toBe('Queued 1 times of bell.\n');
  expect(await run('cron', 'backfill', 'bell', ...range, '-y')).toMatchObject({ code: 0, out: 'Queued 1 times of bell.\n' });
  await expect.poll(async () => (await run('cron', 'runs', 'bell')).out.match(/completed/g)?.length).toBe(2);
  expect((await run('cron', 'backfill', 'bell', ...range, '-y')).out).toBe('bell has no times to run.\n');
  expect((await run('cron', 'backfill', 'bel')).err).toContain('Did you mean "bell"?');
  expect(await run('cron', 'backfill', 'bell', '--from', 'yesterday')).toMatchObject({ code: 2, out: '' });
});

test('cron: the cost of a job per hour is printed before it is added', async () => {
  await using session = await open();
  const { run, server } = session;
  const add = (name: string, ...more: string[]) => run('cron', 'add', name, '--every', '15m', '--message', 'What is due?', ...more);
  expect(await add('blind')).toMatchObject({
    code: 0,
    err: 'Unknown cost: no turn of this agent had a known price yet (4 runs per hour).\n',
  });
  server.provider.setAnswer(() => ({ text: 'Nothing.', usage: { input: 500, output: 500 } }));
  await server.client.call('agent.execute', { message: 'Hello' });
  expect(await add('priced')).toMatchObject({
    code: 0,
    err: "Estimated cost: $0.0060 per hour, based on this agent's recent turns (4 runs per hour).\n",
    out: expect.stringMatching(/^Added priced/),
  });
  expect(await run('cron', 'add', 'once', '--in', '1h', '--message', 'Hi')).toMatchObject({ code: 0, err: '' });
  expect(await add('plain', '--json')).toMatchObject({ code: 0, err: '' });
});

test('cron: every flag reaches the job, and cleared settings are removed', async () => {
  await using session = await open();
  const { run, file } = session;
  await file('gate.ts', 'const answer: boolean = true;\nconsole.log(JSON.stringify({ wake: answer }));\n');
  const flags = ['--in', '1d', '--message', 'Look', '--model', 'mock/mock-fast', '--timeout', '60', '--gate', 'gate.ts', '--gate-timeout', '5'];
  const policy = ['--profile', 'coding', '--allow', 'web_search', '--deny', 'exec', '--cache', 'short', '--continuation', 'heartbeat_excerpt'];
  expect(await run('cron', 'add', 'once', ...flags, ...policy)).toMatchObject({ code: 0, err: '' });
  const jobs = async () => JSON.parse((await run('cron', 'list', '--json')).out) as { jobs: { name: string }[] };
  const job = async () => (await jobs()).jobs.find(({ name }) => name === 'once');
  expect(await job()).toMatchObject({
    schedule: { kind: 'at' },
    payload: { kind: 'agent_turn', message: 'Look', model: 'mock/mock-fast', timeoutSeconds: 60 },
    wakeGate: { language: 'ts', timeoutSeconds: 5, script: expect.stringContaining('answer') },
    toolPolicy: { profile: 'coding', allow: ['web_search'], deny: ['exec'] },
    cacheRetention: 'short',
    continuationMode: 'heartbeat_excerpt',
  });
  expect((await run('cron', 'update', 'once', '--clear', 'gate', '--clear', 'profile', '--clear', 'cache')).code).toBe(0);
  const left = await job();
  for (const field of ['wakeGate', 'toolPolicy', 'cacheRetention']) expect(left).not.toHaveProperty(field);
});

test('cron: invalid flags are reported by the command, or by the field that the gateway names', async () => {
  await using session = await open();
  const { run } = session;
  for (const args of [
    ['add', 'x', '--message', 'Hi'],
    ['add', 'x', '--every', '1h'],
    ['add', 'x', '--every', '1h', '--in', '2h', '--message', 'Hi'],
    ['add', 'x', '--every', 'often', '--message', 'Hi'],
    ['add', 'x', '--every', '1h', '--tz', 'UTC', '--message', 'Hi'],
    ['add', 'x', '--every', '1h', '--event', 'Hi', '--model', 'y'],
    ['add', 'x', '--every', '1h', '--deliver', 'Hi', '--delivery-target', '{'],
    ['update', 'x'],
    ['update', 'x', '--clear', 'name'],
    ['run'],
    ['run', 'x', '--due'],
  ])
    expect([args, (await run('cron', ...args)).code]).toEqual([args, 2]);
  expect(await run('cron', 'add', 'x', '--cron', '99 * * * *', '--message', 'Hi')).toMatchObject({
    code: 2,
    out: '',
    err: expect.stringContaining('schedule.expr'),
  });
  expect(await run('cron', 'runs', 'nothing')).toMatchObject({ code: 1, out: '' });
});

test('heartbeat: listed, enabled, triggered and disabled', async () => {
  await using session = await open();
  const { run } = session;
  expect(rowOf((await run('heartbeat')).out, 'default')?.slice(1, 3)).toEqual(['off', '30 min']);
  expect(await run('heartbeat', 'trigger', 'default')).toMatchObject({ code: 1, out: '' });
  expect((await run('heartbeat', 'enable', 'default')).out).toMatch(/^The heartbeat of default is on; next run at .* UTC\.\n$/);
  expect(rowOf((await run('heartbeat', 'list')).out, 'default')?.[1]).toBe('on');
  expect((await run('heartbeat', 'trigger', 'default')).out).toMatch(/^(Triggered the|A) heartbeat of default.*: \S+\n$/);
  expect((await run('heartbeat', 'disable', 'default')).out).toBe('The heartbeat of default is off.\n');
  expect(await run('heartbeat', 'enable', 'nobody')).toMatchObject({ code: 1, out: '' });
});

test('webhooks: listed, tested with a payload, run, listed as a delivery and replayed', async () => {
  const mapping = { id: 'build', match: { path: 'build' }, messageTemplate: 'Build {{number}} of {{repo.name}}', secret: 's'.repeat(32) };
  await using session = await open({ config: { webhooks: { token: 't'.repeat(32), presets: ['github'], mappings: [mapping] } } });
  const { run, server, file } = session;
  const listed = (await run('webhooks')).out;
  expect(rowOf(listed, 'build')?.slice(0, 7)).toEqual(['build', '/hooks/build', 'agent', 'default', 'HMAC', 'exact', 'config.yaml']);
  expect(rowOf(listed, 'github')?.[6]).toBe('github');
  const payload = JSON.stringify({ number: 7, repo: { name: 'engine' } });
  const shown = await run('webhooks', 'test', 'build', '--payload', payload);
  expect(shown.out).toMatch(/^mapping +build\nmatched by +itself\n[\s\S]*none: --run[\s\S]*Build 7 of engine\n$/);
  expect((await run('webhooks', 'deliveries')).out).toBe('No deliveries.\n');
  await file('payload.json', payload);
  server.provider.queue({ text: 'Seen' }, { text: 'Seen again' });
  expect((await run('webhooks', 'test', 'build', '--from', 'payload.json', '--run')).out).toMatch(/delivery +wd_/);
  const newest = async () => cells((await run('webhooks', 'deliveries', '--mapping', 'build')).out)[1] ?? [];
  await expect.poll(async () => (await newest())[2]).toBe('done');
  const row = await newest();
  expect(row.slice(1, 6)).toEqual(['build', 'done', 'stop', '-', 'Build 7 of engine']);
  const id = row.at(-1) ?? '';
  expect((await run('webhooks', 'replay', id)).out).toMatch(new RegExp(`^Replayed ${id} as wd_\\S+\\.\\n$`));
  await expect.poll(async () => cells((await run('webhooks', 'deliveries', '--state', 'done')).out).length).toBe(3);
  expect((await run('webhooks', 'deliveries', '--state', 'failed')).out).toBe('No deliveries.\n');
  for (const args of [
    ['deliveries', '--state', 'odd'],
    ['test', 'build', '--payload', '{'],
    ['test', 'build', '--header', 'x'],
    ['test', 'build', '--payload', '{}', '--from', 'payload.json'],
  ])
    expect([args, (await run('webhooks', ...args)).code]).toEqual([args, 2]);
  expect(await run('webhooks', 'test', 'nothing')).toMatchObject({ code: 1, out: '' });
});

test('inbox: a delivery of a job is listed, safe to print, and marked as read', async () => {
  await using session = await open();
  const { run, server } = session;
  expect((await run('inbox')).out).toBe('No messages.\n');
  const { client } = server;
  const { conversationRef, sessionKey } = await client.call('agent.execute', { message: 'Hello', sessionKey: 'ada:desk' });
  const target = {
    conversation: {
      conversationScope: {
        tenantId: 'default',
        agentId: 'default',
        partition: { kind: 'principal-key', principalId: 'token:root', sessionKey },
      },
      conversationRef,
    },
    destinationEndpoint: { channelType: 'gateway', channelInstanceId: 'gateway', conversationId: 'inbox', conversationKind: 'direct' },
  };
  const given = ['--in', '1d', '--deliver', 'Tea\u001b[31m\ntime', '--delivery-target', JSON.stringify(target)];
  expect(await run('cron', 'add', 'tea', ...given)).toMatchObject({ code: 0, err: '' });
  expect((await run('cron', 'run', 'tea')).code).toBe(0);
  await expect.poll(async () => (await run('inbox')).out).toContain('1 unread.');
  const { out } = await run('inbox', 'list', '--unread');
  expect(out).toMatch(/^\* .* UTC {2}cron {2}default {2}in_\S+\n {4}Tea\\u001b\[31m\n {4}time\n\n1 unread\.\n$/);
  const id = /in_\S+/.exec(out)?.[0] ?? '';
  expect((await run('inbox', 'read', id)).out).toBe('Marked 1 messages as read.\n');
  expect((await run('inbox', 'list', '--unread')).out).toBe('No messages.\n');
  expect((await run('inbox', 'read', '--all')).out).toBe('Marked 0 messages as read.\n');
  expect(await run('inbox', 'read')).toMatchObject({ code: 2, out: '' });
});
