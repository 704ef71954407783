import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createStepClock,
  hasIrcServer,
  type IrcPerson,
  type IrcServer,
  joinIrc,
  startIrcServer,
  startTestServer,
  type StepClock,
  type TestServer,
  type TestServerOptions,
} from '@gatehouse/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createBell, createObeyingModel, follow } from '../access/approvals/testing/obeying-model.ts';
import { conversationRef } from '../conversations/sessions/conversation.ts';
import { mortal } from './testing/mortal-db.ts';

let ircd: IrcServer;
let homeDir: string;
const servers: TestServer[] = [];
const people: IrcPerson[] = [];
let clock: StepClock;
let rings = 0;
const bell = createBell(() => (rings += 1));
const model = createObeyingModel();
const ring = follow(['bell', {}]);

async function start(options: TestServerOptions = {}): Promise<TestServer> {
  const net = {
    type: 'irc' as const,
    host: '127.0.0.1',
    port: ircd.port,
    tls: false,
    nick: 'gate',
    channels: ['#lab'],
    owners: ['boss!~boss@127.0.0.1', 'ada!~ada@127.0.0.1'],
    dm: { policy: 'open' as const, allowFrom: ['eve!~eve@127.0.0.1'] },
  };
  const server = await startTestServer({
    homeDir,
    clock,
    tools: [bell],
    provider: { answer: ({ body }) => model.answer(body) },
    ...options,
    config: {
      gateway: { drainTimeoutMs: 20 },
      approvals: { rules: [{ tools: ['bell'], action: 'ask' }] },
      agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' }, originTools: { webhook: ['bell'] } } },
      channels: { net },
      ...options.config,
    },
  });
  servers.push(server);
  await expect.poll(async () => (await server.client.call('channels.get', { channel_type: 'irc' })).state).toBe('healthy');
  return server;
}
const stop = async (server: TestServer | undefined) => {
  try {
    await server?.[Symbol.asyncDispose]();
  } catch {}
};
async function join_(nick: string, channels: readonly string[] = []): Promise<IrcPerson> {
  const person = await joinIrc(ircd.port, nick, { channels });
  people.push(person);
  return person;
}
const heard = ({ messages }: IrcPerson) => messages.map((line) => line.replace(/^gate_* /, 'gate '));
const codeIn = (person: IrcPerson) => /\/deny ([A-Z2-9]{8})$/.exec(person.messages.find((line) => line.includes('write /deny')) ?? '')?.[1];

/** Polls while time passes, as IRC takes a line a second. */
const later = <T>(read: () => T | Promise<T>) =>
  expect.poll(() => {
    clock.advance(200);
    return read();
  });

/** Resolves with the code when the question is in the chat. */
async function asked(person: IrcPerson): Promise<string> {
  await later(() => codeIn(person)).toMatch(/^[A-Z2-9]{8}$/);
  return codeIn(person) ?? '';
}
const pending = async (server: TestServer) => (await server.client.call('admin.approval.pending', {})).total;

describe.skipIf(!hasIrcServer('ngircd'))('approvals and commands in chats', () => {
  beforeAll(async () => {
    ircd = await startIrcServer('ngircd');
  });
  afterAll(() => ircd[Symbol.asyncDispose]());
  beforeEach(() => {
    rings = 0;
    clock = createStepClock(Date.UTC(2026, 8, 21, 12));
    homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-chat-approvals-'));
  });
  afterEach(async () => {
    for (const person of people.splice(0)) person[Symbol.dispose]();
    for (const server of servers.splice(0)) await stop(server);
    rmSync(homeDir, { recursive: true, force: true });
  });

  test('are asked in the chat of their work, and decided there by its owner alone', async () => {
    const server = await start();
    const [ada, eve] = [await join_('ada'), await join_('eve')];
    ada.say(`PRIVMSG gate :${follow(['bell', { song: '**[x](y)** ```' }])}`);
    const code = await asked(ada);
    expect(heard(ada)).toEqual([
      `gate ada Agent default waits for an approval, with the code ${code}:`,
      'gate ada What: bell',
      'gate ada Tool: bell',
      'gate ada Arguments: {"song":"**[x](y)** ```"}',
      'gate ada Reason: approvals.rules[0]',
      expect.stringMatching(/^gate ada Without a decision by \d{4}-\d\d-\d\d \d\d:\d\d UTC the call is denied/),
      `gate ada Approve: write /approve ${code}`,
      `gate ada Deny: write /deny ${code}`,
    ]);
    // Somebody else with the code, and a code that there is not.
    eve.say(`PRIVMSG gate :/approve ${code}`);
    ada.say('PRIVMSG gate :/approve AAAAAAAA');
    for (const person of [eve, ada]) await later(() => heard(person).at(-1)).toContain('No approval that you may decide about');
    expect([await pending(server), rings]).toEqual([1, 0]);
    ada.say('PRIVMSG gate :/status');
    await later(() => heard(ada).at(-1)).toContain(`/approve ${code} or /deny ${code}`);
    expect(heard(ada).at(-2)).toBe('gate ada 1 message without an answer yet.');
    ada.say(`PRIVMSG gate :/approve ${code.toLowerCase()}`);
    await later(() => heard(ada).slice(-2)).toEqual([`gate ada The approval ${code} was given by channel:net:ada!~ada@127.0.0.1.`, 'gate ada Done']);
    expect(rings).toBe(1);
    const { rows } = await server.client.call('obs.audit.query', { actionType: 'approval.resolve' });
    expect(rows).toMatchObject([{ refs: { by: 'channel:net:ada!~ada@127.0.0.1', via: 'channel' }, outcome: 'success' }]);
    ada.say(`PRIVMSG gate :/deny ${code}`);
    await later(() => heard(ada).at(-1)).toContain('already approved');
  });

  test('that are denied continue without the call', async () => {
    await start();
    const ada = await join_('ada');
    ada.say(`PRIVMSG gate :${ring}`);
    ada.say(`PRIVMSG gate :/deny ${await asked(ada)}`);
    await later(() => heard(ada).slice(-2)).toEqual([expect.stringMatching(/^gate ada The approval \w{8} was denied by .*ada/), 'gate ada Done']);
    expect([rings, model.results.join()]).toEqual([0, expect.stringContaining('denied')]);
  });

  test('in groups are decided by owners alone', async () => {
    const server = await start();
    const [eve, boss] = [await join_('eve', ['#lab']), await join_('boss', ['#lab'])];
    eve.say(`PRIVMSG #lab :gate: ${ring}`);
    const code = await asked(boss);
    expect(heard(boss)).toContain(`gate #lab Agent default waits for an approval of an owner, with the code ${code}:`);
    for (const line of [`gate: /approve ${code}`, `/approve ${code}`, 'gate: /stop']) {
      const before = heard(eve).length;
      eve.say(`PRIVMSG #lab :${line}`);
      await later(() => heard(eve).slice(before)).toContain('gate #lab Only the owners of this channel may do that here.');
    }
    expect([await pending(server), rings]).toEqual([1, 0]);
    // In the direct conversation there is nothing to decide.
    boss.say(`PRIVMSG gate :/approve ${code}`);
    await later(() => heard(boss).at(-1)).toContain('No approval that you may decide about');
    boss.say(`PRIVMSG #lab :approve ${code}`);
    await later(() => heard(eve).slice(-2)).toEqual([expect.stringMatching(/^gate #lab The approval \w{8} was given by .*boss/), 'gate #lab Done']);
    expect(rings).toBe(1);
  });

  test.each(['eve', 'guest'])('of somebody who is not an owner (%s) are left to the operator', async (nick) => {
    const server = await start();
    const person = await join_(nick);
    person.say(`PRIVMSG gate :${ring}`);
    const waits = expect.stringMatching(new RegExp(`^gate ${nick} This waits until .* for an approval of the operator\\.$`)) as string;
    await later(() => heard(person)).toEqual([waits]);
    person.say('PRIVMSG gate :/status');
    await later(() => heard(person).slice(1)).toEqual([
      `gate ${nick} Agent default, model mock/mock-fast.`,
      `gate ${nick} 1 message without an answer yet.`,
    ]);
    expect(rings).toBe(0);
    await server.client.call('admin.approval.resolveAll', { approved: true, approvedBy: 'root' });
    await later(() => heard(person).slice(3)).toEqual([`gate ${nick} The approval was given.`, `gate ${nick} Done`]);
    expect(rings).toBe(1);
  });

  test('of somebody who is not an owner are put to the first owner who has written directly, and decided there too', async () => {
    const server = await start();
    const [ada, eve] = [await join_('ada'), await join_('eve')];
    ada.say('PRIVMSG gate :hello');
    await later(() => heard(ada)).toEqual(['gate ada Done']);
    eve.say(`PRIVMSG gate :${ring}`);
    const code = await asked(ada);
    expect(heard(ada).slice(1, 4)).toEqual([
      `gate ada Agent default waits for an approval for somebody else, with the code ${code}:`,
      'gate ada Chat: eve',
      'gate ada What: bell',
    ]);
    eve.say(`PRIVMSG gate :/approve ${code}`);
    await later(() => heard(eve).at(-1)).toContain('No approval that you may decide about');
    expect([await pending(server), rings]).toEqual([1, 0]);
    ada.say(`PRIVMSG gate :/approve ${code}`);
    await later(() => heard(ada).at(-1)).toBe(`gate ada The approval ${code} was given by channel:net:ada!~ada@127.0.0.1.`);
    await later(() => heard(eve).slice(-2)).toEqual(['gate eve The approval was given.', 'gate eve Done']);
    expect(rings).toBe(1);
    // Decided elsewhere.
    const before = heard(ada).length;
    eve.say(`PRIVMSG gate :${ring}`);
    await later(() => heard(ada).slice(before).join('\n')).toContain('/deny');
    await server.client.call('admin.approval.resolveAll', { approved: false, approvedBy: 'root' });
    await later(() => heard(ada).at(-1)).toMatch(/^gate ada The approval \w{8} was denied by .*root/);
    expect(heard(eve).join('\n')).not.toMatch(new RegExp(`${code}|bell`));
  });

  test('survive restarts: the question is sent once, its code stays valid, and the end is confirmed once', async () => {
    const asking = mortal('approvals.ask', true);
    const first = await start({ db: asking.wrap });
    const ada = await join_('ada');
    ada.say(`PRIVMSG gate :${ring}`);
    await asking.died;
    await stop(servers.pop());
    const confirming = mortal('channels.confirmApproval', false);
    await start({ db: confirming.wrap });
    const code = await asked(ada);
    ada.say(`PRIVMSG gate_ :/approve ${code}`);
    ada.say(`PRIVMSG gate :/approve ${code}`);
    await confirming.died;
    await stop(servers.pop());
    await start();
    await later(() => heard(ada)).toContain('gate ada Done');
    await later(() => heard(ada).filter((line) => line.includes('was given by'))).toHaveLength(1);
    expect(heard(ada).filter((line) => line.includes('waits for an approval'))).toHaveLength(1);
    expect([rings, first.url]).toEqual([1, expect.any(String)]);
  });

  test('that nobody decides expire, and the chat is notified', async () => {
    await start({ config: { approvals: { rules: [{ tools: ['bell'], action: 'ask' }], unattendedTimeoutMs: 60_000 } } });
    const ada = await join_('ada');
    ada.say(`PRIVMSG gate :${ring}`);
    const code = await asked(ada);
    clock.advance(61_000);
    await later(() => heard(ada).slice(-2)).toEqual([
      `gate ada The approval ${code} has expired: nobody decided in time, and the call was not made.`,
      'gate ada Done',
    ]);
    ada.say(`PRIVMSG gate :/approve ${code}`);
    await later(() => heard(ada).at(-1)).toContain('expired');
    expect(rings).toBe(0);
  });

  test('/stop ends the running turn and what waits behind it, at once', async () => {
    const server = await start();
    const held = Promise.withResolvers<void>();
    server.provider.setAnswer(() => ({ text: 'Never.', after: held.promise }));
    const ada = await join_('ada');
    ada.say('PRIVMSG gate :first');
    await later(() => server.provider.served()).toBe(1);
    ada.say('PRIVMSG gate :second');
    await later(async () => (await server.client.call('channels.messages', {})).messages.map(({ state }) => state)).toEqual(['running', 'running']);
    ada.say('PRIVMSG gate :/status');
    await later(() => heard(ada).at(-1)).toBe('gate ada 2 messages without an answer yet.');
    ada.say('PRIVMSG gate :/stop');
    await later(() => heard(ada)).toContain('gate ada Stopped: 1 turn.');
    await later(async () =>
      (await server.client.call('channels.messages', {})).messages.map(({ text, state }) => `${text} ${state}`).toSorted(),
    ).toEqual(['/status done', '/stop done', 'first aborted', 'second aborted']);
    held.resolve();
    server.provider.setAnswer(() => ({ text: 'Here.' }));
    ada.say('PRIVMSG gate :still there?');
    await later(() => heard(ada).at(-1)).toBe('gate ada Here.');
    expect(heard(ada).join('\n')).not.toContain('Never');
    ada.say('PRIVMSG gate :/stop');
    await later(() => heard(ada).at(-1)).toBe('gate ada Nothing runs here.');
    ada.say('PRIVMSG gate :/agent');
    await later(() => heard(ada).at(-1)).toBe('gate ada Agent default, model mock/mock-fast.');
    expect((await server.client.call('inbox.list', {})).messages).toEqual([]);
  });

  test('/stop ends a turn with a pending approval, and withdraws it', async () => {
    const server = await start();
    const ada = await join_('ada');
    ada.say(`PRIVMSG gate :${ring}`);
    const code = await asked(ada);
    ada.say('PRIVMSG gate :/stop');
    await later(() => heard(ada)).toEqual(
      expect.arrayContaining(['gate ada Stopped: 1 turn.', `gate ada The approval ${code} is not needed any more.`]),
    );
    expect([await pending(server), rings]).toEqual([0, 0]);
    ada.say(`PRIVMSG gate :/approve ${code}`);
    await later(() => heard(ada).at(-1)).toContain('already denied');
    await later(async () => (await server.client.call('channels.messages', {})).messages.at(-1)?.state).toBe('aborted');
  });

  test('a gate of a graph is asked in the chat that the graph is announced in, and answered there by an owner', async () => {
    const server = await start();
    const [eve, boss] = [await join_('eve', ['#lab']), await join_('boss', ['#lab'])];
    const announce = { announceChannelType: 'irc', announceChannelId: '#lab' };
    const nodes = [{ node_id: 'gate', task: 'Publish it?', type_id: 'approval-gate' as const }];
    const { graphId } = await server.client.call('graph.execute', { nodes, ...announce });
    const code = await asked(boss);
    expect(heard(boss).join('\n')).toMatch(/asks for an approval \(node gate\):\n.*Publish it\?/);
    eve.say(`PRIVMSG #lab :/approve ${code}`);
    await later(() => heard(boss).at(-1)).toContain('Only the owners');
    boss.say(`PRIVMSG #lab :/approve ${code}`);
    await later(() => heard(boss)).toContain('gate #lab Approved.');
    await later(() => server.client.call('graph.status', { graphId })).toMatchObject({ nodes: { gate: { status: 'completed' } } });
    const { rows } = await server.client.call('obs.audit.query', { actionType: 'channels.answer' });
    expect(rows).toMatchObject([{ target: graphId, refs: { by: 'channel:net:boss!~boss@127.0.0.1', approved: true } }]);
  });

  test('of a job that delivers nowhere are asked in the chat that it was added in', async () => {
    const server = await start();
    const ada = await join_('ada');
    const job = { schedule: { kind: 'at', at: '2099-01-01T00:00:00Z' }, payload: { kind: 'agent_turn', message: 'Chime' } };
    ada.say(`PRIVMSG gate :${follow(['cron', { action: 'add', name: 'chime', ...job }])}`);
    await later(() => heard(ada)).toEqual(['gate ada Done']);
    await server.client.call('cron.update', { jobName: 'chime', payload: { kind: 'agent_turn', message: ring } });
    await server.client.call('cron.run', { jobName: 'chime', mode: 'force' });
    ada.say(`PRIVMSG gate :/approve ${await asked(ada)}`);
    await later(async () => (await server.client.call('cron.runs', { jobName: 'chime' })).runs[0]).toMatchObject({ status: 'completed' });
    expect(rings).toBe(1);
  });

  test('of a job are announced where it delivers, and are not for the person there to decide', async () => {
    const server = await start();
    const eve = await join_('eve');
    const destinationEndpoint = { channelType: 'irc', channelInstanceId: 'net', conversationId: 'eve', conversationKind: 'direct' } as const;
    const partition = { kind: 'principal-key', principalId: 'token:root', sessionKey: 'desk:gateway' } as const;
    const conversation = {
      conversationScope: { tenantId: 'default', agentId: 'default', partition },
      conversationRef: conversationRef('default', 'token:root', { userId: 'desk', channelId: 'gateway' }),
    };
    await server.client.call('cron.add', {
      name: 'chime',
      schedule: { kind: 'at', at: '2099-01-01T00:00:00Z' },
      payload: { kind: 'agent_turn', message: ring },
      deliveryTarget: { conversation, destinationEndpoint },
    });
    await server.client.call('cron.run', { jobName: 'chime', mode: 'force' });
    await later(() => heard(eve)).toEqual([expect.stringContaining('for an approval of the operator')]);
    expect([await pending(server), rings]).toEqual([1, 0]);
    await server.client.call('admin.approval.resolveAll', { approved: true, approvedBy: 'root' });
    await later(() => heard(eve).slice(1)).toEqual(['gate eve The approval was given.', 'gate eve Done']);
    await later(async () => (await server.client.call('cron.runs', { jobName: 'chime' })).runs[0]?.deliveryStatus).toBe('accepted');
    expect(rings).toBe(1);
  });
});
