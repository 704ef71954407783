import {
  type FakeMatrix,
  hasIrcServer,
  hasMailServer,
  type IrcServerName,
  joinIrc,
  type MailServer,
  startFakeDiscord,
  startFakeMatrix,
  startFakeSlack,
  startFakeTelegram,
  startIrcServer,
  startMailServer,
} from '@gatehouse/testkit';
import { pause } from './daemon.ts';

/** A chat platform with one person, for proofs. */
export interface PlatformUnderTest extends AsyncDisposable {
  /** Entry `channels.<name>` of a daemon that uses it. */
  readonly config: object;
  /** Whether it offers a message again that was not acknowledged. */
  readonly repeats: boolean;
  /** Whether it knows a send again, or can be asked for it. */
  readonly canResolve: boolean;
  /** The person writes directly to the agent. */
  say(text: string): Promise<void>;
  /** Returns how many messages of the agent with this text the person sees. */
  seen(text: string): Promise<number>;
  /** The next send arrives, and its answer does not come. */
  holdAnswer(): void;
  /** Ends that. */
  release(): void;
  /** Offers again what was not acknowledged, where the platform does so after a time. */
  repeat?(): void;
  /**
   * Returns whether all that it offered is acknowledged: until then a message may come once more. Undefined where nothing is acknowledged: the daemon
   * asks from the position that it stored with the messages (Discord, Matrix, mail), or nothing is offered again (IRC).
   */
  isTaken?(): boolean;
}

const ada = { id: 1001, first_name: 'Ada' };

async function startIrc(name: IrcServerName): Promise<PlatformUnderTest> {
  const server = await startIrcServer(name);
  const person = await joinIrc(server.port, 'ada');
  return {
    config: { type: 'irc', host: '127.0.0.1', port: server.port, tls: false, nick: 'gate' },
    // A server of IRC keeps nothing, and answers at once.
    repeats: false,
    canResolve: false,
    say: async (text) => person.say(`PRIVMSG gate :${text}`),
    seen: async (text) => person.messages.filter((line) => line.includes(text)).length,
    holdAnswer() {},
    release() {},
    async [Symbol.asyncDispose]() {
      person[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

async function startTelegram(): Promise<PlatformUnderTest> {
  const telegram = await startFakeTelegram();
  return {
    config: { type: 'telegram', token: telegram.token, apiUrl: telegram.url },
    repeats: true,
    canResolve: false,
    say: async (text) => void telegram.chats.say(ada, text),
    seen: async (text) => telegram.chats.said(ada.id).filter((one) => one.text.includes(text)).length,
    holdAnswer: () => telegram.fail('sendMessage', 'hangAfter'),
    release() {},
    isTaken: () => telegram.pending().length === 0,
    [Symbol.asyncDispose]: () => telegram[Symbol.asyncDispose](),
  };
}

async function startDiscord(): Promise<PlatformUnderTest> {
  const discord = await startFakeDiscord();
  const person = discord.person('ada');
  const direct = discord.directChannel(person);
  return {
    config: { type: 'discord', token: discord.token, apiUrl: discord.apiUrl },
    repeats: true,
    canResolve: true,
    say: async (text) => void discord.write(person, direct, text),
    seen: async (text) => discord.shown(direct).filter(({ author, content }) => author !== 'ada' && content.includes(text)).length,
    holdAnswer: () => discord.rest.fail(/^POST \/channels\/\d+\/messages$/, 'hangAfter'),
    release() {},
    [Symbol.asyncDispose]: () => discord[Symbol.asyncDispose](),
  };
}

async function startSlack(): Promise<PlatformUnderTest> {
  const slack = await startFakeSlack();
  const person = slack.person('Ada');
  const im = slack.im(person);
  return {
    config: { type: 'slack', apiUrl: slack.apiUrl, appToken: slack.appToken, botToken: slack.botToken },
    repeats: true,
    canResolve: true,
    say: async (text) => void slack.write(person, im, text),
    seen: async (text) => slack.seen(im).filter((one) => one.from !== 'Ada' && one.text.includes(text)).length,
    holdAnswer: () => slack.fault('chat.postMessage', { is: 'hangAfter' }),
    release() {},
    repeat: () => slack.repeat(),
    isTaken: () => slack.unacknowledged === 0,
    [Symbol.asyncDispose]: () => slack[Symbol.asyncDispose](),
  };
}

async function startMatrix(): Promise<PlatformUnderTest> {
  const home = await startFakeMatrix();
  const [gate, person] = [home.account('gate', 'Gate'), home.account('ada', 'Ada')];
  const room = person.createRoom({ invite: [gate.userId], isDirect: true });
  return {
    config: { type: 'matrix', homeserver: home.url, accessToken: gate.token },
    repeats: true,
    canResolve: true,
    async say(text) {
      await isMember(home, room, gate.userId);
      person.say(room, text);
    },
    seen: async (text) => home.shown(room).filter(({ sender, body }) => sender === gate.userId && body.includes(text)).length,
    holdAnswer: () => home.fault(/^PUT .*\/send\/m\.room\.message\//, { is: 'hangAfter' }),
    release: () => home.clearFaults(),
    [Symbol.asyncDispose]: () => home[Symbol.asyncDispose](),
  };
}

/** Waits until somebody has accepted an invitation. */
async function isMember(home: FakeMatrix, room: string, userId: string): Promise<void> {
  for (let tries = 0; home.members(room)[userId] !== 'join'; tries += 1) {
    if (tries === 3_000) throw new Error('the invitation was not accepted');
    await pause(10);
  }
}

/** One mailbox of the agent and one person. */
export function mailPlatform(mail: MailServer): PlatformUnderTest {
  const login = { host: '127.0.0.1', tls: false, user: 'gate', password: mail.password };
  let written = 0;
  return {
    config: { type: 'email', address: 'gate@gate.test', imap: { ...login, port: mail.imapPort }, smtp: { ...login, port: mail.smtpPort } },
    repeats: true,
    canResolve: false,
    async say(text) {
      const head = `From: Ada <ada@people.test>\nTo: gate@gate.test\nSubject: Plans\nMessage-ID: <q${(written += 1)}@people.test>\n`;
      await mail.deliver('gate', `${head}\n${text}\n`, { authentication: 'dmarc=pass header.from=people.test' });
    },
    seen: async (text) => (await mail.mails('ada')).filter(({ raw }) => raw.replaceAll('=\r\n', '').includes(text)).length,
    holdAnswer() {
      mail.fault = 'deliver and hang';
    },
    release() {
      mail.fault = undefined;
    },
    [Symbol.asyncDispose]: () => mail[Symbol.asyncDispose](),
  };
}

const platforms = {
  inspircd: () => startIrc('inspircd'),
  ngircd: () => startIrc('ngircd'),
  email: async () => mailPlatform(await startMailServer()),
  telegram: startTelegram,
  discord: startDiscord,
  slack: startSlack,
  matrix: startMatrix,
};
export type ChannelPlatform = keyof typeof platforms;
export const channelPlatforms = Object.keys(platforms) as readonly ChannelPlatform[];

/** Returns why a platform cannot be started here; undefined when it can. */
export function missingFor(name: ChannelPlatform): string | undefined {
  const isThere = name === 'email' ? hasMailServer() : (name !== 'inspircd' && name !== 'ngircd') || hasIrcServer(name);
  return isThere ? undefined : `${name === 'email' ? 'dovecot' : name} is not installed`;
}

/** Starts a platform. */
export const startPlatform = (name: ChannelPlatform): Promise<PlatformUnderTest> => platforms[name]();
