import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ChannelCapabilities } from '@gatehouse/contract';
import { createStepClock, type StepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createDelivery } from '../features/channels/delivery/delivery.ts';
import { InstanceSender, type SenderDeps } from '../features/channels/delivery/sender.ts';
import { listParts } from '../features/channels/delivery/store.ts';
import type { OpenedPlatform } from '../features/channels/instances/api.ts';
import { platformOf } from '../features/channels/instances/platforms.ts';
import { createActs, valueOf } from '../features/channels/outgoing/acts.ts';
import { createFindTarget } from '../features/channels/outgoing/find-target.ts';
import { createOutgoing, type OutgoingDeps } from '../features/channels/outgoing/outgoing.ts';
import { createMessageTool } from '../features/channels/outgoing/tool.ts';
import { createPlatformActions, type PlatformActionsDeps } from '../features/channels/platform-actions/platform-actions.ts';
import { createActionTools } from '../features/channels/platform-actions/tools.ts';
import { AppError } from '../kernel/app-error.ts';
import type { CallContext } from '../kernel/call-context.ts';
import type { Db } from '../kernel/db/db.ts';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { acceptChannelMessages } from './accept-channel-messages.ts';
import { beginChannelSend, finishChannelSend, recoverChannelSends } from './channel-sends.ts';
import { migrations, operations } from './registry.ts';
import { sendMessage } from './send-message.ts';

type Adapter = OpenedPlatform['adapter'];
type Platform = OpenedPlatform['platform'];
type OutgoingPart = Parameters<Adapter['send']>[0];
type SendResult = Awaited<ReturnType<Adapter['send']>>;
type Act<Value> = Parameters<typeof valueOf<Value>>[0];

const irc = platformOf('irc') ?? expect.fail('IRC is not known');
/** IRC with everything: acts are those of the test's adapter. */
const capabilities: ChannelCapabilities = {
  ...irc.capabilities,
  features: { ...irc.capabilities.features, reactions: true, editMessages: true, deleteMessages: true, fetchHistory: true, attachments: true },
  limits: { ...irc.capabilities.limits, attachmentBytes: 100 },
  actions: ['topic', 'names', 'part'],
};
const platform: Platform = { ...irc, capabilities, rate: { burst: 1_000, perSecond: 1_000 } };
const endpoint = { channelType: 'irc', channelInstanceId: 'net', conversationId: '#lab', conversationKind: 'shared' as const };
const to = { instance: 'net', channelType: 'irc', conversationId: '#lab', threadId: null, conversationKind: 'shared' as const };

let db: Db;
/** Folder of the agent. */
let workspace: string;
let clock: StepClock;
let stopping: AbortController;
let running: Promise<void>;
/** What the platform was asked, in order. */
let asked: unknown[][];
let isConnected: boolean;
let audits: string[];
let alerts: string[];
/** What the platform answers next; it is done otherwise. */
let answers: Act<never>[];
let sends: SendResult[];
let result: Readonly<Record<string, unknown>>;

beforeEach(async () => {
  db = await openInlineDb({ operations, migrations });
  workspace = join(await mkdtemp(join(tmpdir(), 'gatehouse-outgoing-')), 'workspace');
  await mkdir(workspace);
  clock = createStepClock();
  stopping = new AbortController();
  running = Promise.resolve();
  [asked, audits, alerts, answers, sends] = [[], [], [], [], []];
  isConnected = true;
  result = { topicSet: true, channel: '#lab' };
  const row = {
    ...to,
    id: 'cm_1',
    eventKey: 'e1',
    senderId: 'ada',
    senderName: 'ada',
    text: 'hello',
    platformId: 'p1',
    subject: null,
    attachmentsJson: null,
    isForwarded: 0 as const,
    isBot: 0 as const,
    verdict: 'turn' as const,
    agentId: 'default',
    conversationRef: 'cv_lab',
    sentAtMs: 1,
    receivedAtMs: 1,
  };
  const other = { ...row, id: 'cm_2', eventKey: 'e2', conversationId: '#other', platformId: 'p2', conversationRef: 'cv_other' };
  await db.write(acceptChannelMessages, { messages: [{ row }, { row: other }, { row: { ...row, id: 'cm_3', eventKey: 'e3', platformId: null } }] });
});
afterEach(async () => {
  stopping.abort();
  await running;
  await db[Symbol.asyncDispose]();
  await rm(join(workspace, '..'), { recursive: true, force: true });
});

const answer = <Value>(value: Value): Promise<Act<Value>> => Promise.resolve(answers.shift() ?? { is: 'done', value });
const adapter: Partial<Adapter> = {
  send: (part: OutgoingPart) => {
    asked.push(['send', part.text, part.attachment?.name]);
    return Promise.resolve(sends.shift() ?? { is: 'sent', platformId: `m${asked.length}` });
  },
  react: (message, emoji) => (asked.push(['react', message, emoji]), answer<object>({})),
  edit: (message, { text }) => (asked.push(['edit', message, text]), answer<object>({})),
  remove: (message) => (asked.push(['remove', message]), answer<object>({})),
  fetch: (place, { limit, before }) => {
    asked.push(['fetch', place, limit, before]);
    return answer([{ messageId: 'p1', senderId: 'ada', text: 'hello', sentAtMs: 1.5 }]);
  },
  action: (name, params, place) => (asked.push(['action', name, params, place]), answer(result)),
};

/** The methods, as a run of the daemon has them. */
function open({ bootId = 'boot-1', isDurable = true, wire = adapter }: { bootId?: string; isDurable?: boolean; wire?: Partial<Adapter> } = {}) {
  const listeners = new Set<(event: { readonly payload: object }) => void>();
  const bus = {
    wants: () => true,
    emit(kind: string, payload: { readonly actionType?: string }) {
      if (kind === 'audit:event') audits.push(payload.actionType ?? '');
      for (const listener of listeners) listener({ payload });
    },
    listen(_kinds: unknown, listener: (event: { readonly payload: object }) => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const log = { error() {}, warn() {}, info() {}, debug() {} };
  const core = { db, bus, clock, log, traceWork() {} };
  const senderDeps = {
    ...core,
    bootId,
    beginSend: beginChannelSend,
    finishSend: finishChannelSend,
    recoverSends: recoverChannelSends,
    announceAlert() {},
    quietUntil: () => undefined,
  };
  const readFile = () => Promise.resolve(Buffer.from('bytes'));
  const one = new InstanceSender({ ...senderDeps, readFile } as unknown as SenderDeps, {
    instance: 'net',
    adapter: wire as Adapter,
    onUnknown: 'park',
    platform,
    onSent() {},
  });
  running = one.run(stopping.signal);
  const delivery = createDelivery({
    ...core,
    platformOf: () => platform,
    wake: () => one.wake(),
    maxPartsOf: () => undefined,
    quietUntil: () => undefined,
  } as unknown as Parameters<typeof createDelivery>[0]);
  const findTarget = createFindTarget({ db, configOf: () => undefined, defaultAgentId: () => 'default', mayReceive: () => Promise.resolve(true) });
  const acts = createActs({
    clock,
    connected: () => (isConnected ? { platform, adapter: wire as Adapter } : undefined),
    capabilitiesOf: () => capabilities,
  });
  const admit = (capability: string) => void asked.push([capability]);
  const shared = { ...core, agents: { usable: (id: string) => ({ id }) }, autonomy: { admit }, findTarget, acts };
  const methods = createOutgoing({
    ...shared,
    bootId,
    delivery: delivery.api,
    sendMessage,
    platformOf: () => platform,
    capabilitiesOf: () => capabilities,
    isDurable: () => isDurable,
    inbox: {
      deliverCall: () => ({ operation: 'delivery.stages', input: { agentIds: [] } }),
      announce: ({ text }: { text: string }) => void alerts.push(text),
    },
    media: {
      maxFileBytes: 1_000,
      find: (mediaId: string) =>
        mediaId.startsWith('md_')
          ? Promise.resolve({ mediaId, contentType: 'image/png', size: mediaId === 'md_large' ? 101 : 5, savedAt: 1 })
          : Promise.reject(new AppError('not_found', 'Media file not found')),
      async save({ body, fileName }: { body: AsyncIterable<Uint8Array>; fileName?: string }) {
        let size = 0;
        for await (const chunk of body) size += chunk.byteLength;
        asked.push(['save', fileName, size]);
        return { mediaId: 'md_fetched', contentType: 'image/png', size, fileName, savedAt: 1 };
      },
    },
    workspaceOf: () => workspace,
    isInternal: () => false,
    egress: {
      request({ url, maxBytes }: { url: string; maxBytes: number }) {
        asked.push(['get', url, maxBytes]);
        return Promise.resolve({
          url,
          status: 200,
          headers: {},
          body: Buffer.alloc(url.endsWith('large') ? maxBytes : 3),
          truncated: url.endsWith('large'),
        });
      },
    },
  } as unknown as OutgoingDeps);
  const actions = createPlatformActions({ ...shared, valueOf } as unknown as PlatformActionsDeps);
  return { methods, actions };
}

const signal = new AbortController().signal;
const admin: CallContext = {
  identity: { principalId: 'token:root', tokenId: 'root', scopes: ['admin'] },
  traceId: 'a'.repeat(32),
  requestId: 'r1',
  signal,
  transport: 'process',
};
/** A call of the agent in the turn of a conversation. */
const byAgent = (conversationRef = 'cv_lab', rootRunId = 'root-1', agentId = 'default'): CallContext => ({
  ...admin,
  agentCaller: {
    agentId,
    principalId: 'channel:lab',
    conversationRef,
    turn: { turnId: 'tn_1', origin: 'channel', sessionKey: 'k', rootRunId },
  },
});
const failed = (kind: Extract<Act<never>, { is: 'failed' }>['kind']): Act<never> => ({ is: 'failed', kind, text: 'It failed' });
const message = { conversationId: '#lab', threadId: undefined, messageId: 'p1' };

describe('acts of platforms', () => {
  test('are asked for with the id of the platform, and those of administrators are recorded', async () => {
    const { methods } = open();
    expect(await methods['message.react']({ endpoint, message_id: 'cm_1', emoji: '👍' }, admin)).toEqual({
      reacted: true,
      channelId: '#lab',
      messageId: 'p1',
      emoji: '👍',
    });
    expect(await methods['message.edit']({ endpoint, message_id: 'p1', text: 'new' }, admin)).toEqual({
      edited: true,
      channelId: '#lab',
      messageId: 'p1',
    });
    expect(await methods['message.delete']({ endpoint, message_id: 'p1' }, admin)).toEqual({ deleted: true, channelId: '#lab', messageId: 'p1' });
    expect(await methods['message.fetch']({ endpoint, limit: 5, before: 'cm_1' }, admin)).toEqual({
      messages: [{ id: 'p1', senderId: 'ada', text: 'hello', timestamp: 1 }],
      channelId: '#lab',
    });
    expect(asked).toEqual([
      ['react', message, '👍'],
      ['edit', message, 'new'],
      ['remove', message],
      ['fetch', { conversationId: '#lab', threadId: undefined }, 5, 'p1'],
    ]);
    expect(audits).toEqual(['message.edit', 'message.delete', 'message.fetch']);
  });

  test('are refused for messages of other conversations and without an id, and while the channel is not connected', async () => {
    const { methods } = open();
    const react = (message_id: string) => methods['message.react']({ endpoint, message_id, emoji: '👍' }, admin);
    await expect(react('cm_2')).rejects.toMatchObject({ code: 'not_found' });
    await expect(react('ob_1')).rejects.toMatchObject({ code: 'not_found' });
    await expect(react('cm_3')).rejects.toMatchObject({ code: 'precondition_failed' });
    await expect(methods['message.edit']({ endpoint, message_id: 'p1', text: 'x'.repeat(381) }, admin)).rejects.toMatchObject({
      code: 'invalid_params',
    });
    isConnected = false;
    await expect(react('cm_1')).rejects.toMatchObject({ code: 'unavailable' });
    await expect(methods['message.delete']({ endpoint, message_id: 'p1' }, admin)).rejects.toMatchObject({ code: 'unavailable' });
    expect([asked, audits]).toEqual([[], []]);
  });

  test('fail with an error of the catalogue', async () => {
    const { methods } = open();
    const kinds = [
      ['not_found', 'not_found'],
      ['denied', 'denied'],
      ['invalid', 'invalid_params'],
      ['rate_limited', 'rate_limited'],
      ['unavailable', 'unavailable'],
      ['ambiguous', 'precondition_failed'],
    ] as const;
    for (const [kind, code] of kinds) {
      answers.push(failed(kind));
      const deletion = methods['message.delete']({ endpoint, message_id: 'p1' }, admin);
      await expect(deletion).rejects.toMatchObject({ code, message: expect.stringContaining('It failed') });
    }
  });
});

describe('reactions with an identity', () => {
  const react = ({ methods }: ReturnType<typeof open>, emoji = '👍', call = byAgent()) =>
    methods['message.react']({ endpoint, message_id: 'cm_1', emoji, operation_id: 'call_1' }, call);
  const reactions = () => asked.filter(([name]) => name === 'react').length;

  test('are added once by any number of calls, and not with another emoji', async () => {
    const one = open();
    const receipts = await Promise.all(Array.from({ length: 20 }, () => react(one)));
    expect(new Set(receipts.map((receipt) => JSON.stringify(receipt))).size).toBe(1);
    expect(await react(one)).toEqual(receipts[0]);
    await expect(react(one, '👎')).rejects.toMatchObject({ code: 'conflict' });
    expect(reactions()).toBe(1);
    // The same call of another root run is another operation.
    await react(one, '👎', byAgent('cv_lab', 'root-2'));
    expect(reactions()).toBe(2);
  });

  test('are tried again after a refusal, and parked when the outcome is not known', async () => {
    const one = open();
    answers.push(failed('rate_limited'), failed('ambiguous'));
    await expect(react(one)).rejects.toMatchObject({ code: 'rate_limited' });
    await expect(react(one)).rejects.toMatchObject({ code: 'precondition_failed' });
    await expect(react(one)).rejects.toMatchObject({ code: 'precondition_failed' });
    expect(reactions()).toBe(2);
    expect(alerts).toEqual([expect.stringContaining('may have been added')]);
  });

  test('are parked when the process dies before the answer is stored', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const hanging = { ...adapter, react: () => (resolve(), new Promise<never>(() => {})) };
    void react(open({ wire: hanging }));
    await promise;
    const next = open({ bootId: 'boot-2' });
    await expect(react(next)).rejects.toMatchObject({ code: 'precondition_failed' });
    await expect(react(next)).rejects.toMatchObject({ code: 'precondition_failed' });
    expect([reactions(), alerts.length]).toEqual([0, 1]);
  });

  test('have none without durability', async () => {
    const one = open({ isDurable: false });
    await react(one);
    await react(one);
    expect(reactions()).toBe(2);
  });
});

describe('messages of agents', () => {
  const send = ({ methods }: ReturnType<typeof open>, text: string, call: CallContext, change: object = {}) =>
    methods['message.send']({ endpoint: { ...endpoint, ...change }, text, operation_id: 'call_1' }, call);
  const texts = () => asked.filter(([name]) => name === 'send').map(([, text]) => text);

  test('of one call are sent once within a root run (E11, E12)', async () => {
    const one = open();
    const receipts = await Promise.all(Array.from({ length: 20 }, () => send(one, 'hi', byAgent())));
    expect(new Set(receipts.map((receipt) => JSON.stringify(receipt))).size).toBe(1);
    expect(receipts[0]).toMatchObject({ deliveryStatus: 'accepted', messageIds: [expect.stringMatching(/^m\d+$/)] });
    await expect(send(one, 'ho', byAgent())).rejects.toMatchObject({ code: 'conflict' });
    await send(one, 'again', byAgent('cv_lab', 'root-2'));
    expect(texts()).toEqual(['hi', 'again']);
    expect(asked.filter(([name]) => name === 'orch:message')).toHaveLength(22);
  });

  test('whose end is not known, or that were refused, are not repeated', async () => {
    const one = open();
    sends.push({ is: 'ambiguous', text: 'The connection ended' }, { is: 'rejected', kind: 'gone', text: 'No such nick' });
    expect(await send(one, 'hi', byAgent())).toMatchObject({ deliveryStatus: 'unknown', error: 'The connection ended', messageIds: [] });
    await expect(send(one, 'hi', byAgent())).rejects.toMatchObject({ code: 'precondition_failed' });
    expect(await send(one, 'ho', byAgent('cv_lab', 'root-2'))).toMatchObject({ deliveryStatus: 'rejected', error: 'No such nick' });
    await expect(send(one, 'ho', byAgent('cv_lab', 'root-2'))).rejects.toMatchObject({ code: 'precondition_failed' });
    expect(texts()).toEqual(['hi', 'ho']);
  });

  test('that are pending say so, and their repeat waits for the same one', async () => {
    const held = Promise.withResolvers<SendResult>();
    const one = open({ wire: { ...adapter, send: (part) => (asked.push(['send', part.text]), held.promise) } });
    const first = send(one, 'hi', byAgent());
    await expect.poll(texts).toEqual(['hi']);
    clock.advance(20_000);
    const { deliveryId } = await first;
    expect(await first).toMatchObject({ deliveryStatus: 'pending', messageId: deliveryId });
    const again = send(one, 'hi', byAgent());
    held.resolve({ is: 'sent', platformId: 'm9' });
    expect(await again).toMatchObject({ deliveryStatus: 'accepted', deliveryId, messageId: 'm9' });
    expect(texts()).toEqual(['hi']);
  });

  test('reach only conversations of the agent and its user', async () => {
    const one = open();
    await expect(send(one, 'x', byAgent('cv_lab', 'root-1', 'keeper'))).rejects.toMatchObject({ code: 'not_found' });
    await expect(send(one, 'x', byAgent(), { conversationId: '#other' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(send(one, 'x', byAgent('cv_none'))).rejects.toMatchObject({ code: 'not_found' });
    expect(asked).toEqual([]);
  });
});

describe('files', () => {
  const attach = ({ methods }: ReturnType<typeof open>, attachment_url: string, more: object = {}) =>
    methods['message.attach']({ endpoint, attachment_url, attachment_type: 'image', ...more }, admin);

  test('come from the media store, by id, path or address, and are sent after their caption', async () => {
    const one = open();
    expect(await attach(one, 'md_1.png', { caption: 'Look' })).toMatchObject({
      deliveryStatus: 'accepted',
      receipt: { kind: 'tracked', messageId: 'm2' },
    });
    await attach(one, '/media/md_1.png', { file_name: 'a.png' });
    await attach(one, 'https://example.com/b.png?x=1');
    sends.push({ is: 'sent' });
    expect(await attach(one, 'md_2.png')).toMatchObject({ receipt: { kind: 'delivered_untracked' } });
    sends.push({ is: 'rejected', kind: 'file', text: 'too large' });
    expect(await attach(one, 'md_3.png')).toMatchObject({ deliveryStatus: 'rejected', receipt: null });
    expect(asked).toEqual([
      ['send', 'Look', undefined],
      ['send', '', 'md_1.png'],
      ['send', '', 'a.png'],
      ['get', 'https://example.com/b.png?x=1', 100],
      ['save', 'b.png', 3],
      ['send', '', 'b.png'],
      ['send', '', 'md_2.png'],
      ['send', '', 'md_3.png'],
    ]);
    expect(audits).toEqual(Array.from({ length: 5 }, () => 'message.attach'));
  });

  test('are never read from the disk of the gateway', async () => {
    const one = open();
    for (const url of ['/etc/passwd', 'file:///etc/passwd', '../config.yaml', '/media/../config.yaml', 'ftp://example.com/a'])
      await expect(attach(one, url)).rejects.toMatchObject({ code: 'not_found', message: expect.stringContaining('attachment_url') });
    expect(asked).toEqual([]);
  });

  test('of a workspace are sent by its agent, and nobody else', async () => {
    const one = open();
    await writeFile(join(workspace, 'chart.png'), 'bytes');
    await writeFile(join(workspace, '..', 'secret.png'), 'secret');
    await symlink(join(workspace, '..', 'secret.png'), join(workspace, 'link.png'));
    const tool = createMessageTool(db, one.methods);
    const context = { conversationRef: 'cv_lab', callId: 'call_1', call: byAgent() } as Parameters<typeof tool.run>[1];
    const send = (file: string) => tool.run(tool.args.parse({ action: 'send', text: 'Look', file }), context);
    expect(await send('chart.png')).toMatchObject({ content: expect.stringMatching(/^Sent as m\d+\.$/) });
    for (const path of ['../secret.png', 'link.png', join(workspace, 'chart.png'), 'none.png'])
      await expect(send(path)).rejects.toMatchObject({ code: 'not_found' });
    await expect(attach(one, 'workspace:chart.png')).rejects.toMatchObject({ code: 'not_found' });
    expect(asked).toEqual([
      ['orch:message'],
      ['save', 'chart.png', 5],
      ['send', 'Look', undefined],
      ['send', '', 'chart.png'],
      ...Array.from({ length: 4 }, () => ['orch:message']),
    ]);
  });

  test('that are too large for the channel are refused', async () => {
    const one = open();
    for (const url of ['md_large', 'https://example.com/large']) await expect(attach(one, url)).rejects.toMatchObject({ code: 'payload_too_large' });
    expect((await db.read(listParts, { agentIds: null, state: null, instance: null, offset: 0, limit: 10 })).total).toBe(0);
  });
});

describe('actions of platforms', () => {
  const topic = { action: 'topic', endpoint, topic: 'Release' };

  test('are asked for with the place of the endpoint, and recorded when they change something', async () => {
    const { actions } = open();
    expect(await actions.methods['irc.action'](topic, admin)).toEqual({ topicSet: true, channel: '#lab' });
    result = { channel: '#lab', names: ['ada'], total: 1 };
    expect(await actions.methods['irc.action']({ action: 'names', endpoint }, admin)).toEqual(result);
    const place = { conversationId: '#lab', threadId: undefined };
    expect(asked).toEqual([
      ['action', 'topic', { topic: 'Release' }, place],
      ['action', 'names', {}, place],
    ]);
    expect(audits).toEqual(['irc.action']);
  });

  test('fail with what the platform said, or with an answer that it should not give', async () => {
    const { actions } = open();
    answers.push(failed('denied'));
    await expect(actions.methods['irc.action'](topic, admin)).rejects.toMatchObject({ code: 'denied', message: 'It failed' });
    result = { topicSet: 'yes' };
    await expect(actions.methods['irc.action'](topic, admin)).rejects.toMatchObject({ code: 'unavailable' });
  });

  test('are refused before the platform is asked', async () => {
    const { actions } = open();
    const run = (action: string, params: object, change: object = {}) =>
      actions.run('irc', { action, endpoint: { ...endpoint, ...change }, params: { ...params } }, admin);
    await expect(run('ban', {})).rejects.toMatchObject({
      code: 'invalid_params',
      message: 'action: expected one of join, part, topic, names, sendTyping',
    });
    await expect(run('topic', {})).rejects.toMatchObject({ code: 'invalid_params' });
    await expect(run('names', {}, { conversationId: '#none' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(run('names', {}, { channelType: 'email' })).rejects.toMatchObject({ code: 'precondition_failed' });
    // The channel of the test does not offer it.
    await expect(run('sendTyping', {})).rejects.toMatchObject({
      code: 'precondition_failed',
      message: 'irc.action: the channel net (irc) does not offer the action sendTyping',
    });
    isConnected = false;
    await expect(run('names', {})).rejects.toMatchObject({ code: 'unavailable' });
    expect([asked, audits]).toEqual([[], []]);
  });

  test('are tools by the risk of their rows', async () => {
    const { actions } = open();
    const [tool, ...none] = createActionTools(['irc', 'other'], { run: actions.run, endpointOf: () => Promise.resolve(endpoint) });
    expect(none).toEqual([]);
    const args = (action: string, params: object = {}) => tool?.args.parse({ action, params });
    expect(tool).toMatchObject({ name: 'irc_action', risk: 'outward', effect: 'once', capability: 'orch:message' });
    expect(['names', 'topic', 'part'].map((action) => [tool?.onlyReads?.(args(action)), tool?.mustAsk?.(args(action)) !== undefined])).toEqual([
      [true, false],
      [false, false],
      [false, true],
    ]);
    const context = { conversationRef: 'cv_lab', call: byAgent() } as Parameters<NonNullable<typeof tool>['run']>[1];
    expect(await tool?.run(args('topic', { topic: 'Release' }), context)).toMatchObject({ content: JSON.stringify(result) });
    expect(asked.map(([name]) => name)).toEqual(['orch:message', 'action']);
    await expect(tool?.run(args('topic', { topic: 1 }), context)).rejects.toMatchObject({ code: 'invalid_params' });
  });
});
