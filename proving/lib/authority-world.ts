import { createHmac, hkdfSync } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type FakeTelegram, startFakeTelegram, type TelegramPerson } from '@gatehouse/testkit';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type FakeAnswer, type FakeRequest, startFakeProvider } from '../../packages/testkit/src/fake-provider.ts';
import { type Act, secretSearch } from './authority-acts.ts';
import { connected, until, withinMs } from './channels.ts';
import { type Daemon, startDaemon } from './daemon.ts';
import { ageBoots, makeHome, removeHome, writeConfig } from './home.ts';
import { askForCall, makeAskedCall, nonceOf, noncesIn, proofConfig } from './provider.ts';
import { rpcCall } from './rpc.ts';

/** An author in a chat. */
export interface Speech {
  /** Bot of Telegram, and channel of the daemon. */
  readonly bot: 'gate' | 'open';
  readonly from: TelegramPerson;
  /** The direct chat when absent. */
  readonly group?: number | undefined;
  readonly isForwarded?: boolean | undefined;
  readonly isUnmentioned?: boolean | undefined;
}

const Messages = z.object({
  messages: z.array(
    z.object({
      text: z.string(),
      senderId: z.string(),
      verdict: z.string(),
      agentId: z.string(),
      state: z.string().nullable(),
      conversationRef: z.string().nullable(),
    }),
  ),
  total: z.number(),
});
type Row = z.output<typeof Messages>['messages'][number];
const Pending = z.object({ requests: z.array(z.object({ requestId: z.string(), params: z.unknown(), conversationRef: z.string() })) });
const Jobs = z.object({ jobs: z.array(z.object({ name: z.string() })) });
const Deliveries = z.object({ deliveries: z.array(z.object({ text: z.string(), endpoint: z.object({ conversationId: z.string() }) })) });
const Pairings = z.object({ pairings: z.array(z.object({ pairingId: z.string(), senderId: z.string() })) });
const Prompt = z.object({
  messages: z.array(
    z.object({ role: z.string(), content: z.unknown(), tool_calls: z.array(z.object({ function: z.object({ name: z.string() }) })).optional() }),
  ),
});

/** A secret in Bob's conversation and memory. */
const secret = 'the secret of Bob is sesame-4711';
const bob: TelegramPerson = { id: 901, first_name: 'Bob' };
const pageRows = 200;

/** A model that makes each call once that any message asks for. */
function createModel() {
  const called = new Set<string>();
  /** Marks of the messages that it was asked about. */
  const seen = new Set<string>();
  /** Results of calls by tool and mark. */
  const results = new Map<string, string>();
  /** Answers wait for it. */
  const held: { until?: Promise<void> | undefined } = {};
  function answer(request: FakeRequest): FakeAnswer | undefined {
    if (!request.path.endsWith('/chat/completions')) return undefined;
    const { messages } = Prompt.parse(request.body);
    const mark = noncesIn(JSON.stringify(messages.findLast(({ role }) => role === 'user')?.content ?? '')).at(-1) ?? '';
    seen.add(mark);
    const made = makeAskedCall(request);
    const [call] = made?.toolCalls ?? [];
    if (made !== undefined && call !== undefined && !called.has(`${call.name} ${mark}`)) {
      called.add(`${call.name} ${mark}`);
      return { ...made, ...(held.until !== undefined && { after: held.until }) };
    }
    const tool = messages.findLast(({ tool_calls: calls }) => calls !== undefined)?.tool_calls?.[0]?.function.name;
    if (messages.at(-1)?.role === 'tool') results.set(`${tool} ${mark}`, String(made?.text));
    return { text: 'Done' };
  }
  return { answer, results, seen, held };
}

export interface WorldOptions {
  readonly broken?: string | undefined;
  readonly owners: readonly TelegramPerson[];
  /** People of groups, the first is the owner of the group. */
  readonly groups: ReadonlyMap<number, readonly TelegramPerson[]>;
  readonly patienceMs?: number | undefined;
}

export type World = Awaited<ReturnType<typeof startWorld>>;

/** Starts a daemon with two channels of different agents, their platform, and a model that does whatever somebody asks. */
export async function startWorld({ broken, owners, groups, patienceMs = withinMs }: WorldOptions) {
  const stack = new AsyncDisposableStack();
  const home = await makeHome();
  stack.defer(() => removeHome(home));
  const model = createModel();
  const provider = await startFakeProvider({ journal: 0, answer: model.answer });
  stack.defer(() => provider.close());
  const gate = stack.use(await startFakeTelegram({ seesAll: true }));
  const open = stack.use(await startFakeTelegram({ token: '4343:TEST-token_of_another_bot' }));
  const wires = { gate, open };
  for (const [id, members] of groups) gate.chats.addGroup({ id, title: `Group ${id}`, members, bot: 'administrator' });
  const requested: string[] = [];
  const server = createServer(({ url = '' }, response) => {
    requested.push(url);
    response.end('hello');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stack.defer(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const { port: privatePort } = server.address() as AddressInfo;
  const port = await freePort();
  await writeConfig(home, configOf(provider.url, wires, owners));

  const begin = async () => {
    const started = await startDaemon({ home, port, ...(broken !== undefined && { broken }) });
    await connected(started, ['gate', 'open']);
    return started;
  };
  let daemon: Daemon = await begin();
  stack.defer(() => daemon.kill());
  const call = (method: string, params: object = {}) => rpcCall(daemon, method, params);
  const wait = (holds: () => Promise<boolean>, what: string) => until(holds, what, patienceMs);
  const installKey = Buffer.from((await readFile(join(home, 'install.key'), 'utf8')).trim(), 'hex');
  let page: Promise<readonly Row[]> | undefined;
  /** Shared by all that look at the same time. */
  const rows = () => (page ??= readRows().finally(() => (page = undefined)));
  async function readRows(): Promise<readonly Row[]> {
    const { messages, total } = Messages.parse(await call('channels.messages', { limit: pageRows }));
    const earlier = total > pageRows ? Messages.parse(await call('channels.messages', { limit: pageRows, offset: pageRows })).messages : [];
    return [...messages, ...earlier];
  }
  const rowsOf = async ({ from }: Speech, text: string) =>
    (await rows()).filter((row) => row.senderId === String(from.id) && row.text.includes(text));
  const rowOf = async (speech: Speech, text: string) => (await rowsOf(speech, text))[0];
  const hasEnded = (row: Row | undefined): boolean => ['done', 'failed', 'aborted'].includes(row?.state ?? '');

  function say({ bot, from, group, isForwarded, isUnmentioned }: Speech, text: string): void {
    const wire = wires[bot];
    wire.chats.say(from, group === undefined || isUnmentioned === true ? text : `@${wire.bot.username} ${text}`, {
      ...(group !== undefined && { chat: group }),
      ...(isForwarded === true && { fields: { forward_origin: { type: 'hidden_user', date: 1, sender_user_name: 'Eve' } } }),
    });
  }

  async function pair(from: TelegramPerson): Promise<void> {
    say({ bot: 'gate', from }, 'hello');
    const codeIn = () => /: ([A-Z2-9]{8})$/.exec(gate.chats.said(from.id).at(-1)?.text ?? '')?.[1];
    await wait(async () => codeIn() !== undefined, 'no code');
    await call('channels.pair', { code: codeIn() });
  }

  /** Has Bob's secret stored, with the approval of the operator. */
  async function plant(): Promise<string> {
    const speech = direct(bob);
    const mark = nonceOf(['planted']);
    say(speech, `${mark} ${askForCall('memory_store', { content: secret })}`);
    await wait(async () => {
      await call('admin.approval.resolveAll', { approved: true });
      return hasEnded(await rowOf(speech, mark));
    }, 'nothing was planted');
    return (await rowOf(speech, mark))?.conversationRef ?? '';
  }
  const otherRef = await plant();
  /** Has Bob ask for something, and returns the result of the call. */
  async function resultForBob(tool: string, args: object): Promise<string | undefined> {
    const mark = nonceOf(['bob', tool.replace('_', '-')]);
    say(direct(bob), `${mark} ${askForCall(tool, args)}`);
    await wait(async () => hasEnded(await rowOf(direct(bob), mark)), `not answered: ${tool}`);
    return model.results.get(`${tool} ${mark}`);
  }

  async function isDone({ effect }: Pick<Act, 'effect'>, mark: string, speech: Speech): Promise<boolean> {
    switch (effect) {
      case 'file':
        return ['default', 'other'].some((agent) => existsSync(join(home, 'workspaces', agent, 'output', mark)));
      case 'outside file':
        return existsSync(join(home, mark));
      case 'config':
        return (await readFile(join(home, 'config.yaml'), 'utf8')).includes(mark);
      case 'sent': {
        const { deliveries } = Deliveries.parse(await call('delivery.list', { limit: pageRows }));
        return deliveries.some(({ text, endpoint }) => text.includes(mark) && endpoint.conversationId === String(bob.id));
      }
      case 'passed on':
        return JSON.stringify(await call('session.history', { conversationRef: otherRef })).includes(mark);
      case 'job':
        return Jobs.parse(await call('cron.list')).jobs.some(({ name }) => name === mark);
      case 'request':
        return requested.includes(`/${mark}`);
      case 'ban':
        return gate.callsOf('banChatMember').some(({ params }) => params['chat_id'] === chatOf(speech));
      case 'browser':
        return existsSync(join(home, 'data/browser'));
      case 'known':
        return [...model.results].some(([about, text]) => about.endsWith(mark) && text.includes(secret));
      case 'agent':
        return (await rowOf(speech, mark))?.agentId === mark.split(' ')[1];
    }
  }

  return {
    model,
    call,
    wait,
    say,
    pair,
    rowOf,
    hasEnded,
    isDone,
    about: {
      otherChat: { channelType: 'telegram', channelInstanceId: 'gate', conversationId: String(bob.id), conversationKind: 'direct' },
      otherRef,
      url: `http://127.0.0.1:${privatePort}`,
    },
    /** Whether each call with which others look for the secret finds it for Bob. */
    async knowsSecret(): Promise<boolean> {
      const found = [await resultForBob('memory_search', secretSearch), await resultForBob('sessions_history', { conversationRef: otherRef })];
      return found.every((text) => text?.includes(secret));
    },
    /** Texts of the bot in a chat. */
    said: (speech: Speech) => wires[speech.bot].chats.said(chatOf(speech)).map(({ text }) => text),
    /** Whether everything that was said is stored or ignored. */
    hasTaken: ({ bot }: Speech) => wires[bot].pending().length === 0,
    /** The request that a message led to, by its conversation or its arguments. */
    async requestOf(speech: Speech, mark: string): Promise<string | undefined> {
      const ref = (await rowOf(speech, mark))?.conversationRef;
      const { requests } = Pending.parse(await call('admin.approval.pending'));
      return requests.find(({ params, conversationRef }) => conversationRef === ref || JSON.stringify(params).includes(mark))?.requestId;
    },
    codeOf: (requestId: string) => codeOf(installKey, requestId),
    /** Says a command, and waits until it is taken in and, where it is one for the speaker, carried out. */
    async command(speech: Speech, text: string, isCommand = true): Promise<void> {
      const before = (await rowsOf(speech, text)).length;
      say(speech, text);
      await wait(async () => {
        if (wires[speech.bot].pending().length > 0) return false;
        const found = await rowsOf(speech, text);
        return !isCommand || found.length === before || found.every((row) => row.verdict !== 'turn' || hasEnded(row));
      }, `not carried out: ${text}`);
    },
    async unpair({ id }: TelegramPerson): Promise<void> {
      const { pairings } = Pairings.parse(await call('channels.pairings', { state: 'approved' }));
      await call('channels.unpair', { pairingId: pairings.find(({ senderId }) => senderId === String(id))?.pairingId });
    },
    /** Waits until the channels are connected again. */
    connected: () => connected(daemon, ['gate', 'open']),
    async restart(): Promise<void> {
      await daemon.kill();
      await ageBoots(home);
      daemon = await begin();
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Returns the code of a request, as the daemon derives it from the key of the installation. */
function codeOf(installKey: Buffer, requestId: string): string {
  const key = Buffer.from(hkdfSync('sha256', installKey, '', 'gatehouse/approval-codes/v1', 32));
  const mac = createHmac('sha256', key).update(requestId).digest();
  return Array.from(mac.subarray(0, 8), (byte) => 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'[byte % 32]).join('');
}

const direct = (from: TelegramPerson): Speech => ({ bot: 'gate', from });
const chatOf = ({ group, from }: Speech): number => group ?? from.id;

interface Wires {
  readonly gate: FakeTelegram;
  readonly open: FakeTelegram;
}

function configOf(providerUrl: string, { gate, open }: Wires, owners: readonly TelegramPerson[]) {
  const agent = { model: 'local/test-model', maxConcurrentRuns: 1000, tools: { profile: 'full', discovery: { mode: 'never' } } };
  const wire = (one: FakeTelegram) => ({ type: 'telegram', token: one.token, apiUrl: one.url });
  return {
    ...proofConfig(providerUrl, { agents: { default: agent, other: agent, spare: agent, private: agent }, browser: { enabled: true } }),
    channels: {
      gate: {
        ...wire(gate),
        agents: ['spare'],
        owners: owners.map(({ id }) => String(id)),
        bots: 'mentions',
        dm: { allowFrom: [String(bob.id)] },
      },
      open: { ...wire(open), agent: 'other', dm: { policy: 'open' } },
    },
  };
}
