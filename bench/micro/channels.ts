// Chat platforms (docs/decisions/0071): how fast messages are taken in and sent, what a message costs without a model, what an idle channel costs,
// and whether many conversations delay another turn. Ratios are of one run; rates depend on the machine.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { freePort } from '@gatehouse/testkit/free-port';
import { startIrcServer } from '@gatehouse/testkit/irc';
import { hasMailServer, startFakeDiscord, startFakeMatrix, startFakeSlack, startMailServer } from '@gatehouse/testkit';
import { parseLine } from '../../packages/server/src/channels/irc/line.ts';
import type { Adapter, Platform } from '../../packages/server/src/channels/port.ts';
import { telegram } from '../../packages/server/src/channels/telegram/platform.ts';
import { createDelivery } from '../../packages/server/src/features/channels/delivery/delivery.ts';
import { InstanceSender } from '../../packages/server/src/features/channels/delivery/sender.ts';
import { enqueueParts } from '../../packages/server/src/features/channels/delivery/store.ts';
import { systemClock } from '../../packages/server/src/kernel/clock.ts';
import type { Core } from '../../packages/server/src/kernel/core.ts';
import { openDb } from '../../packages/server/src/kernel/db/sqlite/open-db.ts';
import { createEventBus } from '../../packages/server/src/kernel/event-bus.ts';
import { silentLog } from '../../packages/server/src/kernel/log.ts';
import { beginChannelSend, finishChannelSend, recoverChannelSends } from '../../packages/server/src/transactions/channel-sends.ts';
import { type BotApi, startBotApi } from '../lib/bot-api.ts';
import { cpuUs, rssMb, type Running, serverCpu, start } from '../lib/proc.ts';
import { callRpc } from '../lib/rpc.ts';
import { median, percentile } from '../lib/stats.ts';
import { product, startUpstream, type Target } from '../lib/targets.ts';

interface Daemon {
  readonly running: Running;
  readonly target: Target;
}

/** Starts the built daemon with channels. Its default agent asks a model that never answers, `quick` one that does. */
async function startDaemon(stack: AsyncDisposableStack, channels?: Readonly<Record<string, object>>): Promise<Daemon> {
  const upstream = await startUpstream();
  stack.defer(upstream.stop);
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  stack.defer(() => {
    silent.closeAllConnections();
    silent.close();
  });
  const silentUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/v1`;
  const subject = await product(upstream.url, {
    providers: { silent: { type: 'openai-compatible', baseUrl: silentUrl, apiKey: 'sk', models: [{ id: 'never' }] } },
    agents: {
      default: { model: 'silent/never', maxConcurrentRuns: 1000 },
      slow: { model: 'mock/mock-p10', maxConcurrentRuns: 1000 },
      quick: { model: 'mock/mock-fast' },
    },
    ...(channels !== undefined && { sections: { channels } }),
  });
  if (subject === undefined) throw new Error('the product is not built: npm run build');
  stack.defer(() => subject.dispose());
  const running = await subject.start({ probe: true });
  stack.defer(running.stop);
  return { running, target: subject.target(running) };
}

const channelOf = ({ token, url }: BotApi, more: object = {}) => ({
  type: 'telegram',
  token,
  apiUrl: url,
  dm: { policy: 'open' },
  typing: false,
  ...more,
});

/** Messages of different people, all there at once, while the model does not answer. */
async function measureIntake(messages: number): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const api = stack.use(await startBotApi());
  const { running } = await startDaemon(stack, { bot: channelOf(api) });
  await api.polled();
  api.say('hello', 200);
  await api.confirmed();
  await sleep(1_000);
  api.confirmedMs.length = 0;
  const cpu = cpuUs(running.pid);
  const before = performance.now();
  api.say('What is new in the house today?', messages);
  await api.confirmed();
  const ms = performance.now() - before;
  const acks = api.confirmedMs.toSorted((a, b) => a - b);
  print('intake', {
    messages,
    'messages/s (must 1000)': (messages / ms) * 1_000,
    'CPU µs per message': (cpuUs(running.pid) - cpu) / messages,
    'acknowledgement p50 ms': percentile(acks, 0.5),
    'acknowledgement p99 ms (must 250)': percentile(acks, 0.99),
  });
}

/** Turns of a caller while 200 conversations are answered, whose model streams for a second. */
async function measureTurns(conversations: number): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const api = stack.use(await startBotApi());
  const { target } = await startDaemon(stack, { bot: channelOf(api, { agent: 'slow' }) });
  await api.polled();
  const turn = async (): Promise<number> => {
    const before = performance.now();
    await callRpc(target, 'agent.execute', { message: 'Which tea shall I buy?', agentId: 'quick' });
    return performance.now() - before;
  };
  for (let index = 0; index < 50; index += 1) await turn();
  const alone: number[] = [];
  for (let index = 0; index < 100; index += 1) alone.push(await turn());
  api.say('What is new in the house today?', conversations);
  const loaded: number[] = [];
  while (api.sent() < conversations) loaded.push(await turn());
  const at = (of: readonly number[], share: number) =>
    percentile(
      of.toSorted((a, b) => a - b),
      share,
    );
  print(`a turn next to ${conversations} conversations`, {
    turns: loaded.length,
    'alone p50 ms': at(alone, 0.5),
    'alone p99 ms': at(alone, 0.99),
    'loaded p50 ms': at(loaded, 0.5),
    'loaded p99 ms (must 250)': at(loaded, 0.99),
  });
}

/** Sends to a platform that answers immediately, without a rate plan, through real storage threads. */
async function measureOutbox(parts: number, conversations: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-outbox-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const workerUrl = new URL('../../packages/server/src/storage-worker.ts', import.meta.url);
  const db = stack.use(await openDb({ dataDir: folder, workerUrl, clock: systemClock, log: silentLog }));
  const core = { db, clock: systemClock, log: silentLog, bus: createEventBus(() => {}), traceWork: () => {} } as unknown as Core;
  const plan = { burst: 1_000_000, perSecond: 1_000_000 };
  const platform: Platform = { ...telegram, rate: plan };
  const quietUntil = () => undefined;
  const { api } = createDelivery({ ...core, platformOf: () => platform, wake: () => {}, maxPartsOf: () => undefined, quietUntil });
  for (let from = 0; from < parts; from += 500) {
    const rows = Array.from({ length: Math.min(500, parts - from) }, (_, index) =>
      api.partsOf({
        opKey: `op-${from + index}`,
        to: {
          instance: 'bot',
          channelType: 'telegram',
          conversationId: String((from + index) % conversations),
          threadId: null,
          conversationKind: 'direct',
        },
        text: 'The tea that you like is sold out, but there is another one.',
        agentId: 'default',
        principalId: 'person:ada',
        conversationRef: null,
        turnId: null,
      }),
    );
    await db.write(enqueueParts, { parts: rows.flat() });
  }
  const stopping = new AbortController();
  let sent = 0;
  const done = Promise.withResolvers<void>();
  const adapter: Pick<Adapter, 'send'> = { send: () => Promise.resolve({ is: 'sent', platformId: '1' }) };
  const sender = new InstanceSender(
    {
      ...core,
      bootId: 'boot',
      beginSend: beginChannelSend,
      finishSend: finishChannelSend,
      recoverSends: recoverChannelSends,
      announceAlert: () => {},
      readFile: () => Promise.resolve(undefined),
      quietUntil,
      agents: { find: () => undefined },
    },
    { instance: 'bot', adapter: adapter as Adapter, platform, onUnknown: 'park', onSent: () => (sent += 1) === parts && done.resolve() },
  );
  const cpu = process.cpuUsage();
  const before = performance.now();
  const running = sender.run(stopping.signal);
  await done.promise;
  const ms = performance.now() - before;
  const { user, system } = process.cpuUsage(cpu);
  stopping.abort();
  await running;
  print(`outbox, ${parts} open parts in ${conversations} conversations`, {
    'sends/s (must 500)': (parts / ms) * 1_000,
    'CPU µs per send': (user + system) / parts,
  });
}

/** The whole path of a message without a model, a command, against a bare script with the same wire. */
async function measurePath(messages: number, rounds: number): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const [ours, bares] = [stack.use(await startBotApi()), stack.use(await startBotApi())];
  const { running } = await startDaemon(stack, { bot: channelOf(ours) });
  const port = await freePort();
  const bare = await start({
    args: [join(import.meta.dirname, '../reference/bare-bot.ts')],
    env: { PORT: String(port), BOT_API: `${bares.url}/bot${bares.token}` },
    healthUrl: `http://127.0.0.1:${port}/`,
    cpu: serverCpu,
  });
  stack.defer(bare.stop);
  const cost = async (api: BotApi, pid: number): Promise<number> => {
    await api.polled();
    const before = cpuUs(pid);
    const goal = api.sent() + messages;
    api.say('/status', messages);
    while (api.sent() < goal) await sleep(5);
    await api.polled();
    return (cpuUs(pid) - before) / messages;
  };
  const pairs: { readonly product: number; readonly bare: number }[] = [];
  for (let round = -1; round < rounds; round += 1) {
    const pair = { product: await cost(ours, running.pid), bare: await cost(bares, bare.pid) };
    if (round >= 0) pairs.push(pair);
  }
  print('whole path without a model', {
    'CPU µs per message': median(pairs.map(({ product: own }) => own)),
    'bare script': median(pairs.map(({ bare: own }) => own)),
    'ratio (must 5)': median(pairs.map((pair) => pair.product / pair.bare)),
  });
}

/** The parser of IRC against cutting a line at its blanks. */
function measureLines(rounds: number): void {
  const lines = Array.from({ length: 20_000 }, (_, index) =>
    index % 2 === 0
      ? `:ada${index}!ada@host.example.org PRIVMSG #tea :Which tea shall I buy today, and where, ${index}?`
      : `@time=2026-11-27T12:00:00.000Z;msgid=m${index};account=ada :ada!ada@host.example.org PRIVMSG gate :Which tea shall I buy today?`,
  );
  const text = `${lines.join('\r\n')}\r\n`;
  const time = (parse: (line: string) => unknown): number => {
    const before = process.cpuUsage();
    let parsed = 0;
    for (const line of text.split('\r\n')) if (parse(line) !== undefined) parsed += 1;
    if (parsed < lines.length) throw new Error('a line was not parsed');
    const { user, system } = process.cpuUsage(before);
    return (user + system) / lines.length;
  };
  const pairs: { readonly own: number; readonly bare: number }[] = [];
  for (let round = -20; round < rounds; round += 1) {
    const pair = { own: time(parseLine), bare: time((line) => line.split(' ')) };
    if (round >= 0) pairs.push(pair);
  }
  print('IRC parser', {
    'CPU µs per line': median(pairs.map(({ own }) => own)),
    'bare split': median(pairs.map(({ bare }) => bare)),
    'ratio (must 3)': median(pairs.map(({ own, bare }) => own / bare)),
  });
}

/** Wake-ups and memory of an idle daemon with each platform, against one without channels and one whose channel is disabled: the least of some runs. */
async function measureIdle(seconds: number, rounds: number): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const cases: [string, Readonly<Record<string, object>> | undefined][] = [['no channels', undefined]];
  const api = stack.use(await startBotApi());
  cases.push(['telegram, disabled', { bot: channelOf(api, { enabled: false }) }], ['telegram', { bot: channelOf(api) }]);
  const matrix = stack.use(await startFakeMatrix());
  cases.push(['matrix', { home: { type: 'matrix', homeserver: matrix.url, accessToken: matrix.account('gate').token } }]);
  const ircd = stack.use(await startIrcServer('inspircd'));
  cases.push(['irc', { net: { type: 'irc', host: '127.0.0.1', port: ircd.port, tls: false, nick: 'gate' } }]);
  const discord = stack.use(await startFakeDiscord());
  cases.push(['discord', { lab: { type: 'discord', token: discord.token, apiUrl: discord.apiUrl } }]);
  const slack = stack.use(await startFakeSlack());
  const { apiUrl, appToken, botToken } = slack;
  cases.push(['slack', { work: { type: 'slack', apiUrl, appToken, botToken } }]);
  if (hasMailServer()) {
    const mail = stack.use(await startMailServer());
    const imap = { host: '127.0.0.1', port: mail.imapPort, tls: false, user: 'gate1', password: 'pw' };
    cases.push(['email', { post: { type: 'email', address: 'gate1@gate.test', name: 'Gate', imap, smtp: { ...imap, port: mail.smtpPort } } }]);
  }
  let floor: Idle | undefined;
  for (const [name, channels] of cases) {
    const runs: Idle[] = [];
    for (let run = 0; run < rounds; run += 1) runs.push(await runIdle(channels, seconds, !name.endsWith('disabled')));
    const least = (figure: keyof Idle) => Math.min(...runs.map((run) => run[figure]));
    const idle = { startMs: least('startMs'), startCpuMs: least('startCpuMs'), mb: least('mb'), wakes: least('wakes') };
    floor ??= idle;
    print(`idle, ${name}`, {
      'start ms': idle.startMs,
      'CPU ms until connected': idle.startCpuMs,
      'RSS MB': idle.mb,
      'MB more than without': idle.mb - floor.mb,
      'wake-ups per 10 s': idle.wakes,
      'more than without': idle.wakes - floor.wakes,
    });
  }
}

/** Processor time of a daemon whose platforms all refuse connections, against one without channels at the same time. Later tries are rarer. */
async function measureDown(seconds: number): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const url = `http://127.0.0.1:${await freePort()}`;
  const port = await freePort();
  const login = { host: '127.0.0.1', port, tls: false, user: 'gate', password: 'pw' };
  const channels: Readonly<Record<string, object>> = {
    telegram: { type: 'telegram', token: '1:x', apiUrl: url },
    matrix: { type: 'matrix', homeserver: url, accessToken: 'x' },
    irc: { type: 'irc', host: '127.0.0.1', port, tls: false, nick: 'gate' },
    discord: { type: 'discord', token: 'x', apiUrl: `${url}/api` },
    slack: { type: 'slack', apiUrl: `${url}/`, appToken: 'xapp-x', botToken: 'xoxb-x' },
    email: { type: 'email', address: 'gate@gate.test', imap: login, smtp: login },
  };
  const [none, down] = [await startDaemon(stack), await startDaemon(stack, channels)];
  await sleep(5_000);
  const before = { none: cpuUs(none.running.pid), down: cpuUs(down.running.pid) };
  await sleep(seconds * 1_000);
  const shareOf = (now: number, then: number) => (now - then) / seconds / 10_000;
  const share = { none: shareOf(cpuUs(none.running.pid), before.none), down: shareOf(cpuUs(down.running.pid), before.down) };
  const health = (await callRpc(down.target, 'channels.health')) as { readonly channels: readonly { readonly restartAttempts: number }[] };
  const count = Object.keys(channels).length;
  print(`${count} platforms that refuse connections, for ${seconds} s`, {
    'connects of each': health.channels.reduce((sum, { restartAttempts }) => sum + restartAttempts, 0) / count,
    'CPU % without channels': share.none,
    'CPU % more, all platforms': share.down - share.none,
    'CPU % more of each (must 0.1)': (share.down - share.none) / count,
  });
}

interface Idle {
  readonly startMs: number;
  readonly startCpuMs: number;
  readonly mb: number;
  readonly wakes: number;
}

async function runIdle(channels: Readonly<Record<string, object>> | undefined, seconds: number, connects: boolean): Promise<Idle> {
  await using stack = new AsyncDisposableStack();
  const { running, target } = await startDaemon(stack, channels);
  if (channels !== undefined && connects) await untilHealthy(target);
  const startCpuMs = cpuUs(running.pid) / 1_000;
  // What every daemon loads that has answered something is not the cost of a channel.
  await callRpc(target, 'agent.execute', { message: 'Which tea shall I buy?', agentId: 'quick' });
  await sleep(3_000);
  await running.ask('collect');
  const before = wakesOf(running.pid);
  await sleep(seconds * 1_000);
  const wakes = ((wakesOf(running.pid) - before) / seconds) * 10;
  await running.ask('collect');
  return { startMs: running.startMs, startCpuMs, mb: rssMb(running.pid), wakes };
}

async function untilHealthy(target: Target): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    const { channels } = (await callRpc(target, 'channels.health')) as { readonly channels: readonly { readonly state: string }[] };
    if (channels.at(-1)?.state === 'healthy') return;
    await sleep(50);
  }
  throw new Error('the channel did not connect');
}

/** How often the main thread of a process waited and ran again. */
function wakesOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/task/${pid}/status`, 'utf8');
  return Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1]);
}

function print(name: string, figures: Readonly<Record<string, number>>): void {
  console.log(name);
  for (const [what, value] of Object.entries(figures)) console.log(`  ${what.padEnd(40)} ${value >= 100 ? value.toFixed(0) : value.toFixed(2)}`);
}

const parts = {
  intake: () => measureIntake(5_000),
  outbox: async () => {
    await measureOutbox(2_000, 200);
    await measureOutbox(10_000, 200);
    await measureOutbox(2_000, 1);
  },
  turns: () => measureTurns(200),
  path: () => measurePath(300, 5),
  lines: () => measureLines(40),
  idle: () => measureIdle(10, 3),
  down: () => measureDown(600),
};
type Part = keyof typeof parts;

const { values } = parseArgs({ options: { only: { type: 'string', default: Object.keys(parts).join() } } });
for (const part of values.only.split(',')) {
  if (!Object.hasOwn(parts, part)) throw new Error(`--only: expected some of ${Object.keys(parts).join()}`);
  await parts[part as Part]();
}
