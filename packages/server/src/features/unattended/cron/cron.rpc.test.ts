import type { ParamsInput } from '@gatehouse/contract';
import { afterEach, expect, test } from 'vitest';
import type { Db } from '../../../kernel/db/db.ts';
import { createObeyingModel, follow, page } from '../../access/approvals/testing/obeying-model.ts';
import { type CronServer, openCron, targetOf } from './testing/open-cron.ts';

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
type Add = ParamsInput<'cron.add'>;

test.each(['http', 'websocket'] as const)('jobs are added, listed, changed, run and removed over %s', async (transport) => {
  const server = await start();
  const socket = transport === 'websocket' ? server.socket() : undefined;
  const call = (socket ?? server.client).call;
  try {
    const added = await call('cron.add', { name: 'report', schedule: hourly, payload: says('What is due?') });
    expect(added).toMatchObject({ name: 'report', schedule: { kind: 'every', everyMs: 3_600_000, anchorMs: server.clock.now() } });
    const { jobs, total } = await call('cron.list', {});
    expect(total).toBe(1);
    expect(jobs).toEqual([
      {
        id: added.jobId,
        name: 'report',
        agentId: 'default',
        source: 'authored',
        schedule: added.schedule,
        lifecycle: { state: 'scheduled', nextRunAtMs: server.clock.now() + 3_600_000, consecutiveDependencyErrors: 0 },
        payload: says('What is due?'),
      },
    ]);
    expect(await call('cron.update', { jobName: 'report', name: 'digest', paused: true })).toEqual({ jobName: 'digest', updated: true });
    expect((await call('cron.list', { agentId: 'default' })).jobs[0]?.lifecycle).toMatchObject({ state: 'paused', reason: 'operator' });
    const run = await call('cron.run', { jobName: 'digest' });
    expect(run).toMatchObject({ triggered: true, mode: 'force', jobName: 'digest', resolvedAgentId: 'default' });
    expect(await server.runs('digest')).toMatchObject([{ trigger: 'manual', status: 'completed', deliveryStatus: 'not_requested' }]);
    expect((await call('cron.status', {})).jobCount).toBe(1);
    const { timesMs } = await call('cron.preview', { schedule: { ...hourly, anchorMs: 0 }, count: 2 });
    expect(timesMs.map((atMs) => atMs % 3_600_000)).toEqual([0, 0]);
    expect(await call('cron.remove', { jobId: added.jobId })).toEqual({ jobName: 'digest', removed: true });
    await expect(call('cron.runs', { jobName: 'digest' })).rejects.toMatchObject({ code: 'not_found' });
  } finally {
    socket?.close();
  }
});

test('a job runs at its times, with one record and two events for each', async () => {
  const server = await start();
  const started = server.heard('scheduler:cron_execution_started');
  const terminal = server.heard('scheduler:cron_execution_terminal');
  const { jobId } = await server.client.call('cron.add', { name: 'tick', schedule: hourly, payload: says('Tick') });
  const beginMs = server.clock.now();
  for (let hour = 1; hour <= 3; hour += 1) {
    // Advances exactly to the due time, because the record holds the time at which the job starts.
    server.clock.advance(beginMs + hour * 3_600_000 - server.clock.now());
    await server.runs('tick', hour);
  }
  const runs = await server.runs('tick', 3);
  expect(runs.map(({ scheduledForMs }) => scheduledForMs)).toEqual([3, 2, 1].map((hour) => beginMs + hour * 3_600_000));
  expect(runs.every(({ status, trigger }) => status === 'completed' && trigger === 'scheduled')).toBe(true);
  expect(started.map(({ executionId }) => executionId)).toEqual(runs.map(({ executionId }) => executionId).toReversed());
  await expect.poll(() => terminal.length).toBe(3);
  expect(terminal[0]).toMatchObject({
    jobId,
    agentId: 'default',
    rootRunId: `root-cron-${runs[2]?.executionId}`,
    workKind: 'agent_turn',
    outcomeKind: 'success',
    executionStatus: 'completed',
    deliveryStatus: 'not_requested',
  });
  expect(server.provider.requests).toHaveLength(3);
});

test('an occurrence costs two commits: its claim with the opening of its turn, and both ends', async () => {
  const written: string[] = [];
  let commits = 0;
  let isCounted = false;
  function counting(db: Db): Db {
    const write = db.write.bind(db);
    db.write = async (operation, input) => {
      const output = await write(operation, input);
      if (!/^(?:cron|durable|turns|inbox)\.(?!prune|renew)/.test(operation.name)) return output;
      written.push(operation.name);
      // The results of one commit arrive together.
      if (!isCounted) {
        commits += 1;
        isCounted = true;
        setImmediate(() => (isCounted = false));
      }
      return output;
    };
    return db;
  }
  const server = await start({ db: counting });
  await server.client.call('cron.add', { name: 'report', schedule: hourly, payload: says('Report'), deliveryTarget: targetOf('token:root') });
  written.length = 0;
  commits = 0;
  server.clock.advance(3_600_000);
  expect(await server.runs('report')).toMatchObject([{ status: 'completed', deliveryStatus: 'accepted' }]);
  expect(written).toEqual(['cron.claim', 'turns.openDurable', 'turns.commitDurable']);
  expect(commits).toBe(2);
});

test('a fresh run sees no earlier runs, a rolling one only the latest', async () => {
  const server = await start();
  for (const [name, sessionPolicy] of [
    ['fresh', { strategy: 'fresh' }],
    ['rolling', { strategy: 'rolling', maxHistoryTurns: 2 }],
  ] as const) {
    await server.client.call('cron.add', { name, schedule: hourly, payload: says(`Ask ${name}`), sessionPolicy });
    for (let n = 1; n <= 4; n += 1) {
      await server.client.call('cron.run', { jobName: name });
      await server.runs(name, n);
    }
    const body = server.provider.requests.at(-1)?.body as { messages: { role: string; content: string }[] };
    expect(body.messages.filter(({ role, content }) => role === 'user' && content.includes(`Ask ${name}`))).toHaveLength(name === 'fresh' ? 1 : 3);
  }
});

test('a one-shot job runs once, is listed as finished, and frees its name after a week', async () => {
  const server = await start();
  const job = { name: 'once', schedule: { kind: 'in', seconds: 60 }, payload: says('Once') } as const;
  const { schedule } = await server.client.call('cron.add', job);
  expect(schedule).toEqual({ kind: 'at', atMs: server.clock.now() + 60_000 });
  await server.pass(120_000, 30_000);
  const [run] = await server.runs('once');
  expect(run).toMatchObject({ status: 'completed', trigger: 'scheduled' });
  expect((await server.client.call('cron.list', {})).jobs[0]?.lifecycle).toMatchObject({
    state: 'one_shot_terminal',
    terminalExecutionId: run?.executionId,
  });
  await expect(server.client.call('cron.update', { jobName: 'once', paused: false })).rejects.toMatchObject({ code: 'precondition_failed' });
  await expect(server.client.call('cron.add', job)).rejects.toMatchObject({ code: 'conflict' });
  await server.pass(7 * 24 * 3_600_000 + 60_000);
  await server.client.call('cron.add', job);
  expect(server.provider.requests).toHaveLength(1);
});

test('a manual run during a scheduled one is a separate occurrence and does not change the job', async () => {
  const server = await start();
  const answered = Promise.withResolvers<void>();
  server.provider.setAnswer(() => ({ text: 'Done.', after: answered.promise }));
  await server.client.call('cron.add', { name: 'slow', schedule: hourly, payload: says('Take long') });
  await server.pass(3_600_000, 600_000);
  await expect.poll(() => (server.clock.advance(1), server.provider.requests.length)).toBe(1);
  const before = (await server.client.call('cron.list', {})).jobs[0]?.lifecycle;
  const forced = await server.client.call('cron.run', { jobName: 'slow' });
  expect((await server.client.call('cron.list', {})).jobs[0]?.lifecycle).toEqual(before);
  await expect(server.client.call('cron.remove', { jobName: 'slow' })).rejects.toMatchObject({ code: 'precondition_failed' });
  answered.resolve();
  const runs = await server.runs('slow', 2);
  expect(runs.map(({ trigger }) => trigger)).toEqual(['manual', 'scheduled']);
  expect(forced).toMatchObject({ executionId: runs[0]?.executionId });
  expect((await server.client.call('cron.list', {})).jobs[0]?.lifecycle).toEqual(before);
});

test('runs that are refused do not wait for the conversation of their job', async () => {
  const held = Promise.withResolvers<void>();
  const slow = { ...page, timeoutMs: 3_600_000, run: async () => (await held.promise, { content: 'Slow' }) };
  const model = createObeyingModel();
  const server = await start({
    tools: [slow],
    provider: { answer: ({ body }) => model.answer(body) },
    config: { agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' }, originTools: { cron: ['page'] } } } },
  });
  await server.client.call('cron.add', { name: 'slow', schedule: hourly, payload: says(follow(['page', {}])) });
  const asked = await Promise.allSettled(Array.from({ length: 30 }, () => server.client.call('cron.run', { jobName: 'slow' })));
  expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(4);
  await expect.poll(async () => (await server.client.call('gateway.status', {})).turns).toEqual({ running: 1, queued: 3 });
  held.resolve();
  expect(await server.runs('slow', 4)).toHaveLength(4);
});

test('consecutive provider failures pause a job; other failures and manual runs do not count', async () => {
  const server = await start({
    // A run counts as failed after it has waited for its provider for the maximum time.
    config: { agents: { default: { model: 'mock/mock-fast', circuitBreaker: { failures: 1000 } } }, durable: { maxWaitMs: 1000 } },
  });
  await server.client.call('cron.add', { name: 'weak', schedule: hourly, payload: says('Try'), maxConsecutiveDependencyErrors: 2 });
  const lifecycle = async () => (await server.client.call('cron.list', {})).jobs[0]?.lifecycle;
  server.provider.setAnswer(() => ({ status: 400, error: { message: 'context' } }));
  await server.client.call('cron.run', { jobName: 'weak' });
  await server.runs('weak', 1);
  expect(await lifecycle()).toMatchObject({ state: 'scheduled', consecutiveDependencyErrors: 0 });
  server.provider.setAnswer(() => ({ status: 401, error: { message: 'no' } }));
  for (let n = 1; n <= 2; n += 1) {
    await server.pass(3_600_000, 300_000);
    // For as many steps as the work needs: on a loaded machine it is behind the clock.
    const endedRuns = async () => (await server.pass(30_000, 30_000), (await server.ended('weak')).length);
    await expect.poll(endedRuns).toBeGreaterThanOrEqual(1 + n);
  }
  const runs = await server.runs('weak', 3);
  expect(runs.slice(0, 2).map(({ status, errorKind }) => `${status} ${errorKind}`)).toEqual(['failed dependency', 'failed dependency']);
  const alerts = (await server.client.call('inbox.list', {})).messages;
  expect(alerts.map(({ source, level, text }) => [source, level, text.includes('refused the credentials')])).toEqual([
    ['cron', 'alert', true],
    ['cron', 'alert', true],
  ]);
  expect(await lifecycle()).toMatchObject({ state: 'paused', reason: 'dependency_errors', consecutiveDependencyErrors: 2 });
  await server.pass(7_200_000, 3_600_000);
  expect(await server.ended('weak')).toHaveLength(3);
  await server.client.call('cron.update', { jobName: 'weak', paused: false });
  expect(await lifecycle()).toMatchObject({ state: 'scheduled', consecutiveDependencyErrors: 0, nextRunAtMs: expect.any(Number) });
});

test('a text is delivered verbatim to the inbox and into a conversation, once, without a model', async () => {
  const server = await start();
  const target = targetOf('token:root', 'conversation');
  await server.client.call('cron.add', { name: 'bell', schedule: hourly, payload: { kind: 'delivery', text: 'Ding.' }, deliveryTarget: target });
  await server.client.call('cron.run', { jobName: 'bell' });
  expect(await server.runs('bell')).toMatchObject([{ status: 'completed', deliveryStatus: 'accepted' }]);
  const { conversationRef: ref } = target.conversation;
  const history = await server.client.call('session.history', { conversationRef: ref });
  expect(history.messages).toMatchObject([{ role: 'assistant', content: 'Ding.' }]);
  expect((await server.client.call('inbox.list', {})).messages).toMatchObject([{ source: 'cron', text: 'Ding.', conversationRef: ref }]);
  expect(server.provider.requests).toHaveLength(0);
});

test('an answer goes to the inbox unless it is a silent token; in a conversation it is fenced', async () => {
  const server = await start();
  const target = targetOf('token:root');
  await server.client.call('cron.add', {
    name: 'watch',
    schedule: hourly,
    payload: says('Look'),
    deliveryTarget: target,
    continuationMode: 'origin_history',
  });
  server.provider.queue({ text: 'Something happened.' }, { text: 'NO_REPLY' });
  await server.client.call('cron.run', { jobName: 'watch' });
  expect(await server.runs('watch')).toMatchObject([{ deliveryStatus: 'accepted' }]);
  await server.client.call('cron.run', { jobName: 'watch' });
  expect((await server.runs('watch', 2))[0]).toMatchObject({ status: 'completed', deliveryStatus: 'suppressed' });
  expect((await server.client.call('inbox.list', {})).messages.map(({ text }) => text)).toEqual(['Something happened.']);
  const { messages } = await server.client.call('session.history', { conversationRef: target.conversation.conversationRef });
  expect(messages).toHaveLength(1);
  expect(messages[0]?.content).toBe('Something happened.');
});

test('an event is queued for the next heartbeat without a model call', async () => {
  const server = await start();
  await server.client.call('cron.add', { name: 'hint', schedule: hourly, payload: { kind: 'heartbeat_event', text: 'Water the plants' } });
  await server.client.call('cron.run', { jobName: 'hint' });
  expect(await server.runs('hint')).toMatchObject([{ status: 'dispatched', deliveryStatus: 'not_requested' }]);
  expect(server.provider.requests).toHaveLength(0);
});

test('a wake gate starts a run with its findings, or skips the run and may deliver a reason', async () => {
  const server = await start();
  const gate = (script: string) => ({ script, language: 'ts' as const, timeoutSeconds: 20 });
  await server.client.call('cron.add', {
    name: 'gated',
    schedule: hourly,
    payload: says('Look at it'),
    deliveryTarget: targetOf('token:root'),
    wakeGate: gate(`const found: string = 'two letters'; console.log(JSON.stringify({ wake: true, context: found }));`),
  });
  await server.client.call('cron.run', { jobName: 'gated' });
  expect(await server.runs('gated')).toMatchObject([{ status: 'completed' }]);
  expect(JSON.stringify(server.provider.requests.at(-1)?.body)).toMatch(/source=.{0,3}wake gate.*two letters/s);
  await server.client.call('cron.update', { jobName: 'gated', wakeGate: gate(`console.log(JSON.stringify({ wake: false, deliver: 'All quiet' }))`) });
  await server.client.call('cron.run', { jobName: 'gated' });
  expect((await server.runs('gated', 2))[0]).toMatchObject({ status: 'skipped', deliveryStatus: 'accepted' });
  expect((await server.client.call('inbox.list', {})).messages[0]?.text).toBe('All quiet');
  expect(server.provider.requests).toHaveLength(1);
}, 30_000);

test('the tools of a run are limited by the policies of its job and its agent', async () => {
  const server = await start({ config: { agents: { default: { model: 'mock/mock-fast', tools: { profile: 'coding' } } } } });
  const offered = () =>
    ((server.provider.requests.at(-1)?.body as { tools?: { function: { name: string } }[] } | undefined)?.tools ?? []).map(
      (tool) => tool.function.name,
    );
  await server.client.call('cron.add', {
    name: 'bare',
    schedule: hourly,
    payload: says('Go'),
    toolPolicy: { profile: 'full', allow: [], deny: ['write'] },
  });
  await server.client.call('cron.run', { jobName: 'bare' });
  await server.runs('bare');
  expect(offered()).toContain('read');
  expect(offered()).not.toContain('write');
  expect(offered()).not.toContain('memory_store');
});

test('built-in jobs run, report their counters, and can be changed only by configuration', async () => {
  const server = await start({
    cron: { builtIn: { memoryLifecycle: { enabled: true }, memoryReview: { enabled: true }, reflection: { enabled: true } } },
  });
  const { jobs } = await server.client.call('cron.list', {});
  expect(jobs.map(({ name, source, payload }) => [name, source, payload])).toEqual(
    ['memory_lifecycle', 'memory_review', 'reflection'].map((action) => [action.replace('_', ' '), 'built_in', { kind: 'internal_action', action }]),
  );
  for (const { name, id } of jobs) {
    await server.client.call('cron.run', { jobName: name });
    const [run] = (await server.client.call('cron.runs', { jobName: id })).runs;
    expect(run?.workKind).toBe('internal_action');
    expect((await server.runs(name))[0]).toMatchObject({
      status: 'completed',
      counters: expect.arrayContaining([{ name: expect.any(String), value: 0 }]),
    });
    await expect(server.client.call('cron.update', { jobId: id, paused: true })).rejects.toMatchObject({ code: 'precondition_failed' });
    await expect(server.client.call('cron.remove', { jobId: id })).rejects.toMatchObject({ code: 'precondition_failed' });
  }
  await server.client.call('agents.create', { agentId: 'second', config: {} });
  await expect.poll(async () => (await server.client.call('cron.list', { agentId: 'second' })).total).toBe(3);
  await server.client.call('agents.delete', { agentId: 'second' });
  await expect.poll(async () => (await server.client.call('cron.list', {})).total).toBe(3);
  expect(server.provider.requests).toHaveLength(0);
});

test('a token sees and changes only its own jobs; jobs of others answer like unknown ones', async () => {
  const server = await start();
  const one = await server.as(['rpc']);
  const two = await server.as(['rpc']);
  const bound = await server.as(['rpc'], { agents: ['elsewhere'] });
  const { jobId } = await one.call('cron.add', { name: 'mine', schedule: hourly, payload: says('Mine') });
  await two.call('cron.add', { name: 'mine', schedule: hourly, payload: says('Also mine') });
  const foreign = { jobId: 'cj_0' };
  const calls = (name: string, id: string) =>
    [
      ['cron.update', { jobId: id, paused: true }],
      ['cron.remove', { jobId: id }],
      ['cron.update', { jobName: name, paused: true }],
      ['cron.remove', { jobName: name }],
      ['cron.runs', { jobName: id }],
      ['cron.run', { jobName: id }],
    ] as const;
  await one.call('cron.add', { name: 'only one', schedule: hourly, payload: says('x') });
  const known = calls('only one', jobId);
  const unknown = calls('nothing', foreign.jobId);
  for (const [index, [method, params]] of known.entries()) {
    const refused = async (given: typeof params) =>
      two.call(method as 'cron.update', given as ParamsInput<'cron.update'>).catch((error: Error) => error);
    expect(await refused(params)).toEqual(await refused(unknown[index]![1]));
    expect(await refused(params)).toMatchObject({ code: 'not_found' });
  }
  expect((await two.call('cron.list', {})).jobs.map(({ name }) => name)).toEqual(['mine']);
  expect((await two.call('cron.status', {})).jobCount).toBe(1);
  expect((await server.client.call('cron.list', {})).total).toBe(3);
  await expect(server.client.call('cron.runs', { jobName: 'mine' })).rejects.toMatchObject({ code: 'precondition_failed' });
  expect((await server.client.call('cron.runs', { jobName: jobId })).runs).toEqual([]);
  await expect(bound.call('cron.add', { name: 'x', schedule: hourly, payload: says('x') })).rejects.toMatchObject({ code: 'not_found' });
  await expect(bound.call('cron.status', {})).rejects.toMatchObject({ code: 'not_found' });
  await expect(one.call('cron.reset', { target: 'ledger', expectedDigests: { ledger: null }, confirmed: true })).rejects.toMatchObject({
    code: 'insufficient_scope',
  });
  await expect(
    one.call('cron.add', { name: 'spy', schedule: hourly, payload: { kind: 'delivery', text: 'x' }, deliveryTarget: targetOf('token:root') }),
  ).rejects.toMatchObject({ code: 'not_found' });
});

test('a job whose token was revoked is skipped with a reason', async () => {
  const server = await start();
  const leaving = await server.as(['rpc']);
  const { jobId } = await leaving.call('cron.add', { name: 'left', schedule: hourly, payload: says('x') });
  await server.client.call('tokens.revoke', { id: leaving.tokenId });
  await server.client.call('cron.run', { jobName: jobId });
  expect(await server.runs(jobId)).toMatchObject([{ status: 'skipped', errorKind: 'authority' }]);
  expect(server.provider.requests).toHaveLength(0);
});

const base: Add = { name: 'job', schedule: hourly, payload: says('x') };
const target = targetOf('token:root');
const endpoint = (change: object) => ({ ...base, deliveryTarget: { ...target, destinationEndpoint: { ...target.destinationEndpoint, ...change } } });
const wrongAdds: Readonly<Record<string, [object, string]>> = {
  'an unknown field': [{ ...base, color: 'red' }, 'color'],
  'an empty name': [{ ...base, name: '' }, 'name'],
  'a name that is too long': [{ ...base, name: 'x'.repeat(201) }, 'name'],
  'no schedule': [{ name: 'x', payload: base.payload }, 'schedule'],
  'an unknown kind of schedule': [{ ...base, schedule: { kind: 'often' } }, 'schedule.kind'],
  'two kinds of schedule': [{ ...base, schedule: { kind: 'every', everyMs: 1000, seconds: 5 } }, 'schedule.seconds'],
  'everyMs of 0': [{ ...base, schedule: { kind: 'every', everyMs: 0 } }, 'schedule.everyMs'],
  'everyMs beyond safe integers': [{ ...base, schedule: { kind: 'every', everyMs: 2 ** 53 } }, 'schedule.everyMs'],
  'seconds of 0': [{ ...base, schedule: { kind: 'in', seconds: 0 } }, 'schedule.seconds'],
  'an invalid expression': [{ ...base, schedule: { kind: 'cron', expr: '61 * * * *' } }, 'schedule.expr'],
  'an unknown zone': [{ ...base, schedule: { kind: 'cron', expr: '* * * * *', tz: 'Mars/Base' } }, 'schedule.tz'],
  'a time in the past': [{ ...base, schedule: { kind: 'at', at: '2020-01-01T00:00:00Z' } }, 'schedule.at'],
  'a time in a gap': [{ ...base, schedule: { kind: 'at', at: '2027-03-28T02:30', tz: 'Europe/Berlin' } }, 'schedule.at'],
  'a time in a fold without fold': [{ ...base, schedule: { kind: 'at', at: '2026-10-25T02:30', tz: 'Europe/Berlin' } }, 'schedule.fold'],
  'an offset and a zone': [{ ...base, schedule: { kind: 'at', at: '2027-01-01T00:00:00Z', tz: 'Europe/Berlin' } }, 'schedule.tz'],
  'a payload of a built-in job': [{ ...base, payload: { kind: 'internal_action', action: 'reflection' } }, 'payload.kind'],
  'an empty message': [{ ...base, payload: says('') }, 'payload.message'],
  'timeoutSeconds of 0': [{ ...base, payload: { ...says('x'), timeoutSeconds: 0 } }, 'payload.timeoutSeconds'],
  'timeoutSeconds of 86401': [{ ...base, payload: { ...says('x'), timeoutSeconds: 86_401 } }, 'payload.timeoutSeconds'],
  'an unknown model': [{ ...base, payload: { ...says('x'), model: 'mock/none' } }, 'payload.model'],
  'an unknown wakeMode': [{ ...base, payload: { kind: 'heartbeat_event', text: 'x', wakeMode: 'soon' } }, 'payload.wakeMode'],
  'maxHistoryTurns of 21': [{ ...base, sessionPolicy: { strategy: 'rolling', maxHistoryTurns: 21 } }, 'sessionPolicy.maxHistoryTurns'],
  'rolling without maxHistoryTurns': [{ ...base, sessionPolicy: { strategy: 'rolling' } }, 'sessionPolicy.maxHistoryTurns'],
  'an unknown continuationMode': [{ ...base, continuationMode: 'forever' }, 'continuationMode'],
  'origin_history without a target': [{ ...base, continuationMode: 'origin_history' }, 'continuationMode'],
  'a gate for a delivery': [
    { ...base, payload: { kind: 'delivery', text: 'x' }, deliveryTarget: target, wakeGate: { script: '1', language: 'js', timeoutSeconds: 1 } },
    'wakeGate',
  ],
  'a gate of 301 seconds': [{ ...base, wakeGate: { script: '1', language: 'js', timeoutSeconds: 301 } }, 'wakeGate.timeoutSeconds'],
  'a gate in another language': [{ ...base, wakeGate: { script: '1', language: 'py', timeoutSeconds: 1 } }, 'wakeGate.language'],
  'an unknown cacheRetention': [{ ...base, cacheRetention: 'ever' }, 'cacheRetention'],
  'an unknown profile': [{ ...base, toolPolicy: { profile: 'none', allow: [], deny: [] } }, 'toolPolicy.profile'],
  '257 denied tools': [{ ...base, toolPolicy: { profile: 'full', deny: Array.from({ length: 257 }, () => 'read') } }, 'toolPolicy.deny'],
  'errors below 0': [{ ...base, maxConsecutiveDependencyErrors: -1 }, 'maxConsecutiveDependencyErrors'],
  'a reference that is not the digest': [
    { ...base, deliveryTarget: { ...target, conversation: { ...target.conversation, conversationRef: `cv_${'A'.repeat(43)}` } } },
    'deliveryTarget.conversation.conversationRef',
  ],
  'an unknown channel': [endpoint({ channelType: 'telegram' }), 'deliveryTarget.destinationEndpoint.channelType'],
  'another instance': [endpoint({ channelInstanceId: 'x' }), 'deliveryTarget.destinationEndpoint.channelInstanceId'],
  'another conversation of the channel': [endpoint({ conversationId: 'x' }), 'deliveryTarget.destinationEndpoint.conversationId'],
  'a thread': [endpoint({ threadId: 'x' }), 'deliveryTarget.destinationEndpoint.threadId'],
  'a shared conversation': [endpoint({ conversationKind: 'shared' }), 'deliveryTarget.destinationEndpoint.conversationKind'],
};

test('invalid job fields are rejected by name', async () => {
  const server = await start();
  const answers: Record<string, unknown> = {};
  for (const [what, [params]] of Object.entries(wrongAdds))
    answers[what] = await server.client.call('cron.add', params as Add).then(
      () => 'taken',
      (error: { code: string; issues?: { path: string; message: string }[]; message: string }) => ({
        code: error.code,
        text: `${error.message} ${JSON.stringify(error.issues ?? [])}`,
      }),
    );
  for (const [what, [, field]] of Object.entries(wrongAdds))
    expect(answers[what], what).toEqual({ code: 'invalid_params', text: expect.stringContaining(field) });
  expect((await server.client.call('cron.list', {})).total).toBe(0);
});

test('the other methods reject invalid calls', async () => {
  const server = await start({ cron: { maxJobs: 2 } });
  const { call } = server.client;
  const wrong = async (method: 'cron.update' | 'cron.remove' | 'cron.runs' | 'cron.run' | 'cron.reset', params: object, code: string) =>
    expect(call(method as 'cron.update', params as ParamsInput<'cron.update'>), `${method} ${JSON.stringify(params)}`).rejects.toMatchObject({
      code,
    });
  await call('cron.add', { ...base, deliveryTarget: target, cacheRetention: 'long', maxConsecutiveDependencyErrors: 3 });
  await expect(call('cron.add', base)).rejects.toMatchObject({ code: 'conflict' });
  await call('cron.add', { ...base, name: 'second' });
  await expect(call('cron.add', { ...base, name: 'third' })).rejects.toMatchObject({ code: 'precondition_failed' });
  await wrong('cron.update', { paused: true }, 'invalid_params');
  await wrong('cron.update', { jobName: 'job', sessionPolicy: null }, 'invalid_params');
  await wrong('cron.update', { jobName: 'job', name: 'second' }, 'conflict');
  await wrong('cron.remove', {}, 'invalid_params');
  await wrong('cron.runs', { jobName: 'job', limit: 0 }, 'invalid_params');
  await wrong('cron.runs', { jobName: 'job', limit: 10_001 }, 'invalid_params');
  await wrong('cron.run', {}, 'invalid_params');
  await wrong('cron.run', { mode: 'due', jobName: 'job' }, 'invalid_params');
  await wrong('cron.run', { jobName: 'nothing' }, 'not_found');
  await wrong('cron.reset', { target: 'all', expectedDigests: { store: null, ledger: null } }, 'invalid_params');
  await wrong('cron.reset', { target: 'all', expectedDigests: { store: null }, confirmed: true }, 'invalid_params');
  await wrong('cron.reset', { target: 'store', expectedDigests: { store: 'ABC' }, confirmed: true }, 'invalid_params');
  await call('cron.update', { jobName: 'job', deliveryTarget: null, cacheRetention: null, maxConsecutiveDependencyErrors: null });
  const job = (await call('cron.list', {})).jobs.find(({ name }) => name === 'job');
  expect(Object.keys(job ?? {})).toEqual(['id', 'name', 'agentId', 'source', 'schedule', 'lifecycle', 'payload']);
});
