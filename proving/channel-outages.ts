import { startFakeTelegram, type TelegramPerson } from '@gatehouse/testkit';
import { startTcpProxy, type TcpProxy } from '@gatehouse/testkit/tcp-proxy';
import * as z from 'zod';
import { type Findings, withDaemon } from './channel-promises.ts';
import { type ChannelPlatform, missingFor, type PlatformUnderTest, startPlatform } from './lib/channel-platforms.ts';
import { until } from './lib/channels.ts';
import { type Daemon, pause } from './lib/daemon.ts';
import { answerTo, askWith, nonceOf } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';

/**
 * What channels do while their platforms are away, refuse or share an account. The clock of the daemon runs faster than the real one: an hour of
 * it is two minutes.
 */
const speed = 30;
const hourMs = 3_600_000 / speed;
const mostTries = 60;
const dayMs = 86_400_000;

/** Those whose whole traffic passes through one address each; Discord and Slack name another one for their sockets. */
const platforms: readonly ChannelPlatform[] = ['ngircd', 'email', 'telegram', 'matrix'];

const Deliveries = z.object({ deliveries: z.array(z.object({ text: z.string(), state: z.string() })) });
const Channel = z.object({
  channelInstanceId: z.string(),
  state: z.string(),
  stateChangedAt: z.number(),
  retryAt: z.number().nullable(),
  restartAttempts: z.number(),
});
const Health = z.object({ channels: z.array(Channel), timestamp: z.number() });

export interface OutageOptions {
  /** Refused: each connection is reset. Hole: it is accepted, and nothing answers. */
  readonly as: 'refused' | 'hole';
  readonly broken?: string | undefined;
}

export interface OutageReport extends Findings {
  /** Connects of each channel in the hour. */
  readonly tries: Readonly<Record<string, number>>;
  /** Connections of each channel to its platform in the hour; one connect may need several. */
  readonly connections: Readonly<Record<string, number>>;
}

interface Away {
  readonly name: ChannelPlatform;
  readonly wire: PlatformUnderTest;
  /** What its traffic passes through. */
  readonly proxies: readonly TcpProxy[];
  readonly config: object;
  readonly say: (when: string) => Promise<void>;
  readonly seen: (when: string) => Promise<number>;
}

/** Starts the platforms of this machine behind proxies. */
async function startWires(stack: AsyncDisposableStack): Promise<readonly Away[]> {
  const wires: Away[] = [];
  for (const name of platforms.filter((one) => missingFor(one) === undefined)) {
    const wire = stack.use(await startPlatform(name));
    const proxies: TcpProxy[] = [];
    const config = await redirected(wire.config, async (port) => {
      const proxy = stack.use(await startTcpProxy(port));
      proxies.push(proxy);
      return proxy.port;
    });
    const say = (when: string) => wire.say(askWith(nonceOf([name, when])));
    wires.push({ name, wire, proxies, config, say, seen: (when: string) => wire.seen(nonceOf([name, when])) });
  }
  return wires;
}

/** Platforms are away for an hour: they are asked ever less often, and all that was written before, meanwhile and afterwards is answered once. */
export async function proveAway({ as, broken }: OutageOptions): Promise<OutageReport> {
  await using stack = new AsyncDisposableStack();
  const wires = await startWires(stack);
  const wrong: string[] = [];
  const held = Promise.withResolvers<void>();
  const asked = new Set<string>();
  const answer = (nonce: string) => {
    asked.add(nonce);
    return { text: answerTo(nonce), ...(nonce.includes('-held-') && { after: held.promise }) };
  };
  // Platforms use the real time: by the clock of the daemon their messages are old.
  const channels = Object.fromEntries(wires.map(({ name, config }) => [name, { ...config, maxAgeMs: dayMs }]));
  return await withDaemon({ channels, answer, speed, broken }, async (daemon) => {
    const seenAll = async (when: string) => (await Promise.all(wires.map(({ seen }) => seen(when)))).every((copies) => copies > 0);
    for (const { say } of wires) await say('before');
    await until(() => seenAll('before'), 'not answered before');
    for (const { say } of wires) await say('held');
    await until(async () => wires.every(({ name }) => asked.has(nonceOf([name, 'held']))), 'not asked about');

    const connectsBefore = await connectsOf(daemon);
    const acceptedBefore = countAll(wires);
    for (const { proxies } of wires)
      for (const proxy of proxies)
        if (as === 'hole') proxy.stall();
        else proxy.refuse();
    const tries = async () => difference(await connectsOf(daemon), connectsBefore);
    const isStorm = async () => Object.values(await tries()).some((count) => count > mostTries);
    const endsAt = performance.now() + hourMs;
    await waitUntil(endsAt - hourMs / 2, isStorm);
    // An answer is kept for an hour.
    held.resolve();
    for (const { wire, say } of wires) if (wire.repeats) await say('meanwhile');
    await waitUntil(endsAt, isStorm);
    const made = await tries();
    const connections = difference(countAll(wires), acceptedBefore);
    for (const [name, count] of Object.entries(made)) if (count > mostTries) wrong.push(`${name} was connected ${count} times in an hour`);
    const report = { wrong, tries: made, connections };
    if (wrong.length > 0) return report;

    for (const { proxies } of wires)
      for (const proxy of proxies) {
        proxy.accept();
        proxy.resume();
      }
    await until(async () => (await unhealthy(daemon)).length === 0, 'a channel did not connect again');
    for (const { say } of wires) await say('after');
    await until(() => seenAll('after'), 'not answered afterwards');
    for (const { name, wire, seen } of wires)
      for (const when of ['before', 'held', ...(wire.repeats ? ['meanwhile'] : []), 'after']) {
        const state = await settled(daemon, nonceOf([name, when]));
        const copies = await seen(when);
        const isRight = state === 'accepted' ? copies === 1 : state === 'unknown' && copies <= 1 && as === 'hole';
        if (!isRight) wrong.push(`the answer to what was written to ${name} (${when}) is ${state}, and seen ${copies} times`);
      }
    return report;
  });
}

/** Waits until a time, or until something has gone wrong. */
async function waitUntil(at: number, isWrong: () => Promise<boolean>): Promise<void> {
  while (performance.now() < at && !(await isWrong())) await pause(3_000);
}

/** Returns the state of the answer with a nonce once it has its end. */
async function settled(daemon: Daemon, nonce: string): Promise<string> {
  let state = 'missing';
  const isSettled = async () => {
    const { deliveries } = Deliveries.parse(await rpcCall(daemon, 'delivery.list', { limit: 100 }));
    state = deliveries.find(({ text }) => text.includes(nonce))?.state ?? 'missing';
    return !['missing', 'pending', 'sending'].includes(state);
  };
  await until(isSettled, 'no end').catch(() => undefined);
  return state;
}

const healthOf = async (daemon: Daemon) => Health.parse(await rpcCall(daemon, 'channels.health', {})).channels.filter(isPlatform);
const isPlatform = ({ channelInstanceId }: { readonly channelInstanceId: string }) => channelInstanceId !== 'gateway';
const connectsOf = async (daemon: Daemon) =>
  Object.fromEntries((await healthOf(daemon)).map(({ channelInstanceId, restartAttempts }) => [channelInstanceId, restartAttempts]));
const unhealthy = async (daemon: Daemon) => (await healthOf(daemon)).filter(({ state }) => state !== 'healthy');

const countAll = (wires: readonly { readonly name: string; readonly proxies: readonly TcpProxy[] }[]) =>
  Object.fromEntries(wires.map(({ name, proxies }) => [name, proxies.reduce((sum, { accepted }) => sum + accepted, 0)]));
const difference = (now: Readonly<Record<string, number>>, before: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(now).map(([name, count]) => [name, count - (before[name] ?? 0)]));

/** Replaces each port of a configuration. */
async function redirected(config: object, via: (port: number) => Promise<number>): Promise<object> {
  const entries = Object.entries(config).map(async ([key, value]: [string, unknown]): Promise<[string, unknown]> => {
    if (key === 'port' && typeof value === 'number') return [key, await via(value)];
    const port = typeof value === 'string' ? /^http:\/\/[^/]*:(\d+)/.exec(value)?.[1] : undefined;
    if (port !== undefined) return [key, String(value).replace(`:${port}`, `:${await via(Number(port))}`)];
    return [key, typeof value === 'object' && value !== null ? await redirected(value, via) : value];
  });
  return Object.fromEntries(await Promise.all(entries));
}

const holeSpeed = 5;
const holeMs = 180_000;
/** Time in which a connection into a hole is noticed: a long poll ends 15 s after its time. */
const noticedMs: Readonly<Partial<Record<ChannelPlatform, number>>> = { telegram: 65_000 };
const usuallyNoticedMs = 60_000;
const backMs = 30_000;

export interface HoleReport extends Findings {
  /** Seconds by the clock of the daemon until each channel was known to be disconnected, and until it was connected again after the end. */
  readonly noticed: Readonly<Record<string, number>>;
  readonly back: Readonly<Record<string, number>>;
}

/** Nothing gets through for three minutes, and nothing is closed: each channel notices it, connects again soon afterwards, and answers once. */
export async function proveHole({ broken }: { readonly broken?: string } = {}): Promise<HoleReport> {
  await using stack = new AsyncDisposableStack();
  const wires = await startWires(stack);
  const wrong: string[] = [];
  const noticed: Record<string, number> = {};
  const back: Record<string, number> = {};
  const channels = Object.fromEntries(wires.map(({ name, config }) => [name, { ...config, maxAgeMs: dayMs }]));
  return await withDaemon({ channels, speed: holeSpeed, broken }, async (daemon) => {
    const seenAll = async (when: string) => (await Promise.all(wires.map(({ seen }) => seen(when)))).every((copies) => copies > 0);
    for (const { say } of wires) await say('before');
    await until(() => seenAll('before'), 'not answered before');
    const since = await timeOf(daemon);
    for (const { proxies } of wires) for (const proxy of proxies) proxy.stall();
    const endsAt = performance.now() + holeMs / holeSpeed;
    while (performance.now() < endsAt) {
      for (const { channelInstanceId: name, stateChangedAt } of await unhealthy(daemon)) noticed[name] ??= secondsOf(stateChangedAt - since);
      await pause(100);
    }
    const resumedAt = await timeOf(daemon);
    for (const { proxies } of wires) for (const proxy of proxies) proxy.resume();
    await until(async () => (await unhealthy(daemon)).length === 0, 'a channel did not connect again');
    for (const { channelInstanceId: name, stateChangedAt } of await healthOf(daemon)) back[name] = secondsOf(stateChangedAt - resumedAt);
    for (const { name } of wires) {
      const [noticedS, mostS] = [noticed[name], secondsOf(noticedMs[name] ?? usuallyNoticedMs)];
      if (noticedS === undefined || noticedS > mostS) wrong.push(`${name} noticed the hole after ${noticedS} s, not within ${mostS} s`);
      if ((back[name] ?? 0) > secondsOf(backMs)) wrong.push(`${name} was connected ${back[name]} s after the end of the hole`);
    }
    for (const { say } of wires) await say('after');
    await until(() => seenAll('after'), 'not answered afterwards');
    for (const { name, seen } of wires)
      for (const when of ['before', 'after'])
        if ((await seen(when)) !== 1) wrong.push(`the answer to what was written to ${name} (${when}) is seen ${await seen(when)} times`);
    return { wrong, noticed, back };
  });
}

const timeOf = async (daemon: Daemon) => Health.parse(await rpcCall(daemon, 'channels.health', {})).timestamp;
const secondsOf = (ms: number) => Math.round(ms / 1_000);

const people: readonly TelegramPerson[] = Array.from({ length: 50 }, (_, n) => ({ id: 2001 + n, first_name: `Person ${n}` }));
const limitSeconds = 40;
const limitSpeed = 4;
/** Sends a second. */
const planned = 30;
/** Calls that were under way when the first refusals came, and those that show that the bot is meant. */
const mostRefused = planned + 10;

/** Telegram refuses everything for forty seconds while fifty answers wait: nothing is sent before, nothing is lost, and another bot is not affected. */
export async function proveLimit({ broken }: { readonly broken?: string } = {}): Promise<Findings> {
  const begun = Date.now();
  const now = () => begun + (Date.now() - begun) * limitSpeed;
  await using limited = await startFakeTelegram({ now });
  await using free = await startFakeTelegram({ now, token: '4343:TEST-token_of_another_bot' });
  const bot = ({ token, url }: typeof limited) => ({ type: 'telegram', token, apiUrl: url });
  const held = Promise.withResolvers<void>();
  const asked = new Set<string>();
  const answer = (nonce: string) => (asked.add(nonce), { text: answerTo(nonce), after: held.promise });
  const wrong: string[] = [];
  await withDaemon({ channels: { limited: bot(limited), free: bot(free) }, answer, speed: limitSpeed, broken }, async (daemon) => {
    for (const [n, person] of people.entries()) limited.chats.say(person, askWith(nonceOf(['limited', n])));
    await until(async () => asked.size === people.length, 'not asked about');
    limited.limit(0, limitSeconds);
    const endsAt = now() + limitSeconds * 1_000;
    held.resolve();
    const calls = () => limited.callsOf('sendMessage');
    await until(async () => calls().length > 0, 'nothing was sent');
    const [other] = people;
    if (other !== undefined) free.chats.say(other, askWith(nonceOf(['free'])));
    await until(async () => free.chats.said(other?.id ?? 0).length > 0, 'another bot does not answer');
    if (now() >= endsAt) wrong.push('another bot answered only after the end of the limit');
    const saidTo = ({ id }: TelegramPerson) => limited.chats.said(id).length;
    while (now() < endsAt) await pause(100);
    const resumedAt = now();
    const refused = calls().filter(({ status }) => status === 429).length;
    if (refused > mostRefused) wrong.push(`Telegram was asked ${refused} times before the end of its limit`);
    await until(async () => people.every((person) => saidTo(person) > 0), 'an answer is lost').catch((error: unknown) => wrong.push(String(error)));
    const rate = people.length / ((now() - resumedAt) / 1_000);
    if (rate > 2 * planned) wrong.push(`${rate.toFixed(0)} messages a second were sent after the limit`);
    const doubled = people.filter((person) => saidTo(person) > 1).length;
    if (doubled > 0) wrong.push(`${doubled} answers were sent twice`);
    const { deliveries } = Deliveries.parse(await rpcCall(daemon, 'delivery.list', { limit: 100 }));
    const bad = deliveries.filter(({ state }) => state === 'unknown' || state === 'rejected');
    if (bad.length > 0) wrong.push(`${bad.length} answers are ${bad[0]?.state}`);
  });
  return { wrong };
}

const sharedMinutes = 10;
const sharedSpeed = 10;
/** Between two tries of the daemon that does not poll: enough for the other one to take a message and acknowledge it. */
const aloneMs = 40_000;
const ada: TelegramPerson = { id: 1001, first_name: 'Ada' };

/** Two daemons have the account of one bot: each names it, and tries again once a minute. */
export async function proveSharedAccount({ broken }: { readonly broken?: string } = {}): Promise<Findings & { readonly tries: number }> {
  await using telegram = await startFakeTelegram();
  const setting = { channel: { type: 'telegram', token: telegram.token, apiUrl: telegram.url }, speed: sharedSpeed, broken };
  const wrong: string[] = [];
  return await withDaemon(setting, (one) =>
    withDaemon(setting, async (two) => {
      const before = telegram.callsOf('getMe').length;
      await pause((sharedMinutes * 60_000) / sharedSpeed);
      const tries = telegram.callsOf('getMe').length - before;
      // The first pause may have begun before.
      if (tries > 2 * (sharedMinutes + 1)) wrong.push(`two daemons with one account connected ${tries} times in ${sharedMinutes} minutes`);
      // Telegram offers a message to both until one has acknowledged it.
      if (broken === undefined) await until(async () => (await Promise.all([one, two].map(alone))).some(Boolean), 'both always poll');
      telegram.chats.say(ada, askWith(nonceOf(['shared'])));
      await until(async () => telegram.chats.said(ada.id).length > 0, 'not answered');
      await pause(60_000 / sharedSpeed);
      const copies = telegram.chats.said(ada.id).length;
      if (copies !== 1) wrong.push(`a message to a shared account was answered ${copies} times`);
      const errors = await Promise.all([one, two].map(async (daemon) => JSON.stringify(await rpcCall(daemon, 'channels.health', {}))));
      if (!errors.some((text) => /other|another/i.test(text))) wrong.push('no daemon names the other client');
      return { wrong, tries };
    }),
  );
}

/** Whether a daemon waits for its next try for long. */
async function alone(daemon: Daemon): Promise<boolean> {
  const { channels, timestamp } = Health.parse(await rpcCall(daemon, 'channels.health', {}));
  return channels.filter(isPlatform).some(({ retryAt }) => retryAt !== null && retryAt - timestamp > aloneMs);
}
