import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type ChannelPlatform, startPlatform } from './lib/channel-platforms.ts';
import { connected, until, withinMs } from './lib/channels.ts';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { ageBoots, makeHome, removeHome, writeConfig } from './lib/home.ts';
import { answerTo, askWith, nonceOf, noncesIn, proofConfig } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';

/**
 * A daemon is killed at a named point of the way of a message of a chat platform. After a restart the message is answered once; where the
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
  readonly platform: ChannelPlatform;
  readonly points?: readonly ChannelKillPoint[];
  readonly rounds?: number;
  /** Fault in addition to the kill. */
  readonly broken?: string;
  /** Time until a message counts as lost; long, as the machine may do other work too. */
  readonly patienceMs?: number;
  readonly progress?: (line: string) => void;
}

export interface KilledChannelsReport {
  kills: number;
  answered: number;
  /** Not answered, with an alert that says that it may have been. */
  unknown: number;
  /** Received and not stored, on a platform that does not offer it again. */
  gone: number;
  /** Lost, answered twice, or unknown without an alert. */
  readonly wrong: string[];
}

const Messages = z.object({ messages: z.array(z.object({ text: z.string(), state: z.string().nullable() })) });
const Deliveries = z.object({ deliveries: z.array(z.object({ deliveryId: z.string(), text: z.string(), state: z.string() })) });
const Inbox = z.object({ messages: z.array(z.object({ text: z.string() })) });

/** Long enough for the kill at "acknowledged". */
const modelMs = 250;

export async function proveKilledChannels({
  platform,
  points = channelKillPoints,
  rounds = 1,
  broken,
  patienceMs = withinMs,
  progress,
}: KilledChannelsOptions): Promise<KilledChannelsReport> {
  const provider = await startFakeProvider({
    journal: 0,
    answer: ({ body, path }) =>
      path.endsWith('/chat/completions') ? { text: answerTo(noncesIn(body).at(-1) ?? 'nothing'), delayMs: modelMs } : undefined,
  });
  await using wire = await startPlatform(platform);
  const home = await makeHome();
  const armed = join(home, 'armed');
  const port = await freePort();
  const channel = { ...wire.config, dm: { policy: 'open' } };
  await writeConfig(home, { ...proofConfig(provider.url), channels: { chat: channel } });
  const faults = ['killed-in-channel', ...(broken === undefined ? [] : [broken])];
  const start = (point: ChannelKillPoint) =>
    startDaemon({ home, port, broken: faults, env: { KILL_AT: point, KILL_ARMED: armed }, readyTimeoutMs: withinMs });
  const report: KilledChannelsReport = { kills: 0, answered: 0, unknown: 0, gone: 0, wrong: [] };
  const todo = Array.from({ length: rounds }, (_, round) =>
    points.map((point) => ({ point, nonce: nonceOf([platform, round, points.indexOf(point)]) })),
  ).flat();
  let daemon: Daemon | undefined;
  try {
    for (const [index, { point, nonce }] of todo.entries()) {
      if (daemon === undefined) {
        daemon = await start(point);
        await connected(daemon);
      }
      await writeFile(armed, '');
      if (point === 'request written') wire.holdAnswer();
      await wire.say(askWith(nonce));
      await die(daemon, point, async () => (await wire.seen(nonce)) > 0);
      report.kills += 1;
      await rm(armed);
      wire.release();
      await ageBoots(home);
      // The daemon that is killed next is the one that recovers.
      daemon = await start(todo[index + 1]?.point ?? point);
      await connected(daemon);
      wire.repeat?.();
      if (point === 'received' && !wire.repeats) report.gone += 1;
      else await check(daemon, { point, nonce, seen: () => wire.seen(nonce), canResolve: wire.canResolve, patienceMs }, report);
      progress?.(`${platform} ${point}: ${report.answered} answered, ${report.unknown} unknown, ${report.wrong.length} wrong of ${report.kills}`);
    }
    // Also what came after its turn.
    for (const { point, nonce } of todo) {
      const copies = await wire.seen(nonce);
      if (copies > 1) report.wrong.push(`${point}: ${copies} answers in the end`);
    }
  } finally {
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
  return report;
}

/** Waits until the daemon has killed itself; at "request written" kills it once its answer has reached the person. */
async function die(daemon: Daemon, point: ChannelKillPoint, isSeen: () => Promise<boolean>): Promise<void> {
  if (point === 'request written') {
    await until(isSeen, 'the answer did not arrive');
    await daemon.kill();
    return;
  }
  const died = await Promise.race([daemon.exited, pause(withinMs)]);
  if (died !== undefined) return;
  await daemon.kill();
  throw new Error(`the daemon never reached the point "${point}"`);
}

interface Checked {
  readonly point: ChannelKillPoint;
  readonly nonce: string;
  readonly seen: () => Promise<number>;
  readonly canResolve: boolean;
  readonly patienceMs: number;
}

async function check({ port, token }: Daemon, { point, nonce, seen, canResolve, patienceMs }: Checked, report: KilledChannelsReport): Promise<void> {
  const target = { port, token };
  const deliveryOf = async () => {
    const { deliveries } = Deliveries.parse(await rpcCall(target, 'delivery.list', { limit: 20 }));
    return deliveries.filter(({ text }) => text.includes(nonce));
  };
  try {
    await until(
      async () => {
        const { messages } = Messages.parse(await rpcCall(target, 'channels.messages', { limit: 20 }));
        const state = messages.find(({ text }) => text.includes(nonce))?.state;
        return state === 'done' && (await deliveryOf()).every((one) => one.state === 'accepted' || one.state === 'unknown');
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
