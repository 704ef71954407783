import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type ChannelPlatform, type PlatformUnderTest, startPlatform } from './lib/channel-platforms.ts';
import { connected, until, withinMs } from './lib/channels.ts';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { ageBoots, makeHome, removeHome, writeConfig } from './lib/home.ts';
import { answerTo, askWith, nonceOf, noncesIn, proofConfig } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';

/**
 * A daemon is killed at a named point of the way of one message of each of its chat platforms, when all of them are at that point. After a restart the message is answered once; where the
 * platform has no way to find out whether an answer arrived, it is not sent again: it is unknown, and an alert says so.
 */
export const channelKillPoints = [
  'received',
  'committed',
  'acknowledged',
  'turn running',
  'turn ended',
  'sending committed',
  'request written',
  'answer read',
  'receipt committed',
] as const;
export type ChannelKillPoint = (typeof channelKillPoints)[number];

export interface KilledChannelsOptions {
  /** One daemon serves all of them: most of the time of a kill is the start after it. */
  readonly platforms: readonly ChannelPlatform[];
  readonly points?: readonly ChannelKillPoint[];
  readonly rounds?: number;
  /** Fault in addition to the kill. */
  readonly broken?: string;
  /** Time until a message counts as lost; long, as the machine may do other work too. */
  readonly patienceMs?: number;
  readonly progress?: (line: string) => void;
}

/** What became of the messages of one platform. */
export interface KilledChannelReport {
  kills: number;
  answered: number;
  /** Not answered, with an alert that says that it may have been. */
  unknown: number;
  /** Received and not stored, on a platform that does not offer it again. */
  gone: number;
  /** Lost, answered twice, or unknown without an alert. */
  readonly wrong: string[];
}
export type KilledChannelsReport = Partial<Record<ChannelPlatform, KilledChannelReport>>;

const Messages = z.object({ messages: z.array(z.object({ text: z.string(), state: z.string().nullable() })) });
const Deliveries = z.object({ deliveries: z.array(z.object({ deliveryId: z.string(), text: z.string(), state: z.string() })) });
const Inbox = z.object({ messages: z.array(z.object({ text: z.string() })) });

export async function proveKilledChannels({
  platforms,
  points = channelKillPoints,
  rounds = 1,
  broken,
  patienceMs = withinMs,
  progress,
}: KilledChannelsOptions): Promise<KilledChannelsReport> {
  const home = await makeHome();
  const armed = join(home, 'armed');
  const answering: { point?: ChannelKillPoint } = {};
  await using stack = new AsyncDisposableStack();
  const provider = await startFakeProvider({
    journal: 0,
    answer: ({ body, path }) => {
      if (!path.endsWith('/chat/completions')) return undefined;
      // The messages that are acknowledged first wait for the others.
      return answering.point === 'acknowledged' && existsSync(armed) ? { hang: true } : { text: answerTo(noncesIn(body).at(-1) ?? 'nothing') };
    },
  });
  stack.defer(() => provider.close());
  const wires: Wire[] = [];
  for (const platform of platforms) wires.push({ platform, ...stack.use(await startPlatform(platform)), report: noKills() });
  const port = await freePort();
  const channels = Object.fromEntries(wires.map(({ platform, config }) => [platform, { ...config, dm: { policy: 'open' } }]));
  await writeConfig(home, { ...proofConfig(provider.url), channels });
  const faults = ['killed-in-channel', ...(broken === undefined ? [] : [broken])];
  const start = async (point: ChannelKillPoint) => {
    const env = { KILL_AT: point, KILL_ARMED: armed, KILL_COUNT: String(platforms.length) };
    const started = await startDaemon({ home, port, broken: faults, env, readyTimeoutMs: withinMs });
    await connected(started, platforms);
    return started;
  };
  const todo = Array.from({ length: rounds }, (_, round) => points.map((point) => ({ point, round }))).flat();
  const nonceFor = ({ platform }: Wire, { point, round }: { point: ChannelKillPoint; round: number }) =>
    nonceOf([platform, round, points.indexOf(point)]);
  let daemon: Daemon | undefined;
  try {
    for (const [index, kill] of todo.entries()) {
      const { point } = kill;
      const killed = (daemon ??= await start(point));
      answering.point = point;
      await writeFile(armed, '');
      if (point === 'request written') for (const wire of wires) wire.holdAnswer();
      await Promise.all(wires.map((wire) => wire.say(askWith(nonceFor(wire, kill)))));
      await die(killed, point, async () => (await Promise.all(wires.map((wire) => wire.seen(nonceFor(wire, kill))))).every((copies) => copies > 0));
      await rm(armed);
      for (const wire of wires) wire.release();
      await ageBoots(home);
      // The daemon that is killed next is the one that recovers.
      const next = await start(todo[index + 1]?.point ?? point);
      daemon = next;
      await Promise.all(
        wires.map(async (wire) => {
          const { report, repeats, canResolve } = wire;
          const nonce = nonceFor(wire, kill);
          report.kills += 1;
          wire.repeat?.();
          if (point === 'received' && !repeats) report.gone += 1;
          else {
            const isTaken = () => wire.isTaken?.() ?? true;
            await check(next, { point, nonce, seen: () => wire.seen(nonce), isTaken, canResolve, patienceMs }, report);
          }
        }),
      );
      const wrong = wires.reduce((sum, { report }) => sum + report.wrong.length, 0);
      progress?.(`${platforms.join(', ')}: ${point}, ${index + 1} of ${todo.length} kills, ${wrong} wrong`);
    }
    // Also what came after its turn.
    for (const wire of wires)
      for (const kill of todo) {
        const copies = await wire.seen(nonceFor(wire, kill));
        if (copies > 1) wire.report.wrong.push(`${kill.point}: ${copies} answers in the end`);
      }
  } finally {
    await daemon?.kill();
    await removeHome(home);
  }
  return Object.fromEntries(wires.map(({ platform, report }) => [platform, report]));
}

/** The same with one platform. */
export async function killedOn(platform: ChannelPlatform, options: Omit<KilledChannelsOptions, 'platforms'>): Promise<KilledChannelReport> {
  const { [platform]: report } = await proveKilledChannels({ platforms: [platform], ...options });
  return report ?? noKills();
}

export const noKills = (): KilledChannelReport => ({ kills: 0, answered: 0, unknown: 0, gone: 0, wrong: [] });

interface Wire extends Omit<PlatformUnderTest, typeof Symbol.asyncDispose> {
  readonly platform: ChannelPlatform;
  readonly report: KilledChannelReport;
}

/** Waits until the daemon has killed itself; at "request written" kills it once its answers have reached their people. */
async function die(daemon: Daemon, point: ChannelKillPoint, isSeen: () => Promise<boolean>): Promise<void> {
  if (point === 'request written') {
    await until(isSeen, 'an answer did not arrive');
    await daemon.kill();
    return;
  }
  const died = await Promise.race([daemon.exited, pause(withinMs)]);
  if (died !== undefined) return;
  await daemon.kill();
  throw new Error(`the daemon never reached the point "${point}" with all messages`);
}

interface Checked {
  readonly point: ChannelKillPoint;
  readonly nonce: string;
  readonly seen: () => Promise<number>;
  readonly isTaken: () => boolean;
  readonly canResolve: boolean;
  readonly patienceMs: number;
}

async function check(
  { port, token }: Daemon,
  { point, nonce, seen, isTaken, canResolve, patienceMs }: Checked,
  report: KilledChannelReport,
): Promise<void> {
  const target = { port, token };
  const deliveryOf = async () => {
    const { deliveries } = Deliveries.parse(await rpcCall(target, 'delivery.list', { limit: 20 }));
    return deliveries.filter(({ text }) => text.includes(nonce));
  };
  try {
    await until(
      async () => {
        const { messages } = Messages.parse(await rpcCall(target, 'channels.messages', { limit: 20 }));
        const own = messages.filter(({ text }) => text.includes(nonce));
        const areDone = isTaken() && own.length > 0 && own.every(({ state }) => state === 'done');
        return areDone && (await deliveryOf()).every((one) => one.state === 'accepted' || one.state === 'unknown');
      },
      'not answered',
      patienceMs,
    );
  } catch (error) {
    report.wrong.push(`${point}: ${String(error)}, seen ${await seen()} times, ${JSON.stringify(await deliveryOf())}`);
    return;
  }
  const deliveries = await deliveryOf();
  const copies = await seen();
  const [delivery] = deliveries;
  if (deliveries.length !== 1 || delivery === undefined) report.wrong.push(`${point}: ${deliveries.length} answers`);
  else if (copies > 1) report.wrong.push(`${point}: answered ${copies} times`);
  else if (delivery.state === 'accepted') {
    if (copies === 1) report.answered += 1;
    else report.wrong.push(`${point}: accepted, and never seen`);
  } else {
    report.unknown += 1;
    const { messages } = Inbox.parse(await rpcCall(target, 'inbox.list', {}));
    if (canResolve) report.wrong.push(`${point}: unknown, although the platform can be asked`);
    if (!messages.some(({ text }) => text.includes(delivery.deliveryId))) report.wrong.push(`${point}: unknown without an alert`);
  }
}
