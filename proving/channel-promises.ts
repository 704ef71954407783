import { startFakeSlack, startFakeTelegram, startMailServer, type TelegramPerson } from '@gatehouse/testkit';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type FakeAnswer, startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { mailPlatform } from './lib/channel-platforms.ts';
import { connected, until } from './lib/channels.ts';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { answerTo, askWith, nonceOf, noncesIn, proofConfig } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';

/** What channels promise while nothing is killed. */
export interface ChannelPromiseOptions {
  readonly broken?: string | undefined;
}

export interface Findings {
  readonly wrong: string[];
}

interface Setting extends ChannelPromiseOptions {
  /** Channels by name; a channel alone is `chat`. */
  readonly channels?: Readonly<Record<string, object>>;
  readonly channel?: object;
  readonly answer?: (nonce: string) => FakeAnswer;
  /** How many times as fast the clock of the daemon runs. */
  readonly speed?: number;
}

const ada: TelegramPerson = { id: 1001, first_name: 'Ada' };
const group = -100_200_300_400;

/** Runs a daemon with channels that answer everybody. */
export async function withDaemon<T>(
  { channel = {}, channels = { chat: channel }, answer, speed = 1, broken }: Setting,
  run: (daemon: Daemon) => Promise<T>,
): Promise<T> {
  const provider = await startFakeProvider({
    journal: 0,
    answer: ({ body, path }) => {
      if (!path.endsWith('/chat/completions')) return undefined;
      const nonce = noncesIn(body).at(-1) ?? 'nothing';
      return { text: answerTo(nonce), ...answer?.(nonce) };
    },
  });
  const home = await makeHome();
  let daemon: Daemon | undefined;
  try {
    const opened = Object.entries(channels).map(([name, one]) => [name, { ...one, dm: { policy: 'open' } }]);
    await writeConfig(home, { ...proofConfig(provider.url), channels: Object.fromEntries(opened) });
    const faults = ['virtual-clock', ...(broken === undefined ? [] : [broken])];
    const env = { CLOCK_SPEED: String(speed) };
    daemon = await startDaemon({ home, port: await freePort(), broken: faults, env, readyTimeoutMs: 60_000 });
    await connected(daemon, Object.keys(channels));
    return await run(daemon);
  } finally {
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}

const Queue = z.object({ delivered: z.number(), pending: z.number(), inFlight: z.number(), unknown: z.number() });

/** Answers whose confirmation is lost, on a platform that cannot be asked: each is seen once, and unknown. */
export async function proveLostConfirmations({ each = 1, broken }: ChannelPromiseOptions & { readonly each?: number } = {}): Promise<Findings> {
  await using telegram = await startFakeTelegram();
  const said = () => telegram.chats.said(ada.id).map(({ text }) => text);
  const wrong: string[] = [];
  await withDaemon({ channel: { type: 'telegram', token: telegram.token, apiUrl: telegram.url }, broken }, async (daemon) => {
    for (let n = 0; n < each; n += 1) {
      const nonce = nonceOf(['unconfirmed', n]);
      telegram.fail('sendMessage', 'cutAfter');
      telegram.chats.say(ada, askWith(nonce));
      await until(async () => {
        const { delivered, pending, inFlight, unknown } = Queue.parse(await rpcCall(daemon, 'delivery.queue.status', { channel_type: 'telegram' }));
        return delivered + unknown === n + 1 && pending + inFlight === 0;
      }, 'no answer');
      const copies = said().filter((text) => text.includes(nonce)).length;
      if (copies !== 1) wrong.push(`an answer whose confirmation was lost is seen ${copies} times`);
    }
    const { unknown } = Queue.parse(await rpcCall(daemon, 'delivery.queue.status', { channel_type: 'telegram' }));
    if (unknown !== each) wrong.push(`${unknown} of ${each} answers whose confirmation was lost are unknown`);
  });
  return { wrong };
}

/** Two conversations of one person at the same time: each answer goes to where its message came from. More than 30 messages a minute would be a flood. */
export async function proveRoutes({ each = 1, broken }: ChannelPromiseOptions & { readonly each?: number } = {}): Promise<Findings> {
  await using telegram = await startFakeTelegram();
  telegram.chats.addGroup({ id: group, title: 'Lab', members: [ada], bot: 'member' });
  const said = (chat: number) => telegram.chats.said(chat).map(({ text }) => text);
  const wrong: string[] = [];
  let both = Promise.withResolvers<void>();
  const asked = new Set<string>();
  const answer = (nonce: string): FakeAnswer => {
    asked.add(nonce);
    return { text: answerTo(nonce), after: both.promise };
  };
  await withDaemon({ channel: { type: 'telegram', token: telegram.token, apiUrl: telegram.url }, answer, broken }, async () => {
    for (let n = 0; n < each; n += 1) {
      both = Promise.withResolvers();
      const [here, there] = [nonceOf(['direct', n]), nonceOf(['group', n])];
      telegram.chats.say(ada, askWith(here));
      await until(async () => asked.has(here), 'the first message was not asked about');
      telegram.chats.say(ada, `@${telegram.bot.username} ${askWith(there)}`, { chat: group });
      // Neither ends before both have begun.
      await until(async () => asked.has(there), 'the second message was not asked about');
      both.resolve();
      const all = () => [...said(ada.id), ...said(group)].join('\n');
      await until(async () => all().includes(here) && all().includes(there), 'not answered');
      if (!said(ada.id).some((text) => text.includes(here))) wrong.push('an answer to a direct message was sent to a group');
      if (!said(group).some((text) => text.includes(there))) wrong.push('an answer to a message of a group was sent directly');
    }
  });
  return { wrong };
}

const silentMessages = 24;
const silentSpeed = 20;
const Health = z.object({ channels: z.array(z.object({ channelInstanceId: z.string(), restartAttempts: z.number() })) });

/** Nothing comes any more over an open connection, while answers are sent: it is noticed, and connected again. */
export async function proveSilence({ broken }: ChannelPromiseOptions = {}): Promise<Findings> {
  await using slack = await startFakeSlack();
  const person = slack.person('Ada');
  const im = slack.im(person);
  const sends = () => slack.callsOf('chat.postMessage').length;
  const channel = { type: 'slack', apiUrl: slack.apiUrl, appToken: slack.appToken, botToken: slack.botToken };
  const answer = (nonce: string): FakeAnswer => ({ text: answerTo(nonce), delayMs: 300 });
  return await withDaemon({ channel, answer, speed: silentSpeed, broken }, async (daemon) => {
    // As Slack does, though by the clock of the daemon.
    const pings = setInterval(() => slack.ping(), 200);
    for (let n = 0; n < silentMessages; n += 1) slack.write(person, im, askWith(nonceOf(['silent', n])));
    await until(async () => slack.unacknowledged === 0 && sends() > 0, 'not received');
    clearInterval(pings);
    slack.fallSilent();
    const reconnects = async () => {
      const { channels } = Health.parse(await rpcCall(daemon, 'channels.health', {}));
      return channels.find(({ channelInstanceId }) => channelInstanceId === 'chat')?.restartAttempts ?? 0;
    };
    const before = await reconnects();
    let isNoticed = false;
    await until(async () => (isNoticed = (await reconnects()) > before) || sends() >= silentMessages, 'neither noticed nor answered');
    return { wrong: isNoticed ? [] : [`${sends()} answers were sent over a channel that had fallen silent, and it stayed healthy`] };
  });
}

const quietSpeed = 30;
/** More than ten checks of the mailbox. */
const quietMs = 15_000;
const lostMs = 20_000;

/** A mailbox in which nothing happens for a while: the last mail stays read, and the next one is answered. */
export async function proveQuietMailbox({ broken }: ChannelPromiseOptions = {}): Promise<Findings> {
  await using mail = mailPlatform(await startMailServer());
  const [before, after] = [nonceOf(['quiet', 0]), nonceOf(['quiet', 1])];
  return await withDaemon({ channel: mail.config, speed: quietSpeed, broken }, async () => {
    await mail.say(askWith(before));
    await until(async () => (await mail.seen(before)) > 0, 'the first mail was not answered');
    await pause(quietMs);
    await mail.say(askWith(after));
    const isAnswered = await until(async () => (await mail.seen(after)) > 0, 'lost', lostMs).then(
      () => true,
      () => false,
    );
    const copies = await mail.seen(before);
    return {
      wrong: [
        ...(isAnswered ? [] : ['a mail after a quiet time was not answered']),
        ...(copies === 1 ? [] : [`a mail was answered ${copies} times`]),
      ],
    };
  });
}
