import { joinIrc, startIrcServer } from '@gatehouse/testkit/irc';

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
  seen(text: string): number;
  /** Lets a send with this text arrive, and keeps its answer back. */
  holdAnswer(text: string): void;
  /** Ends that. */
  release(): void;
}

const platforms = {
  async inspircd(): Promise<PlatformUnderTest> {
    const server = await startIrcServer('inspircd');
    const ada = await joinIrc(server.port, 'ada');
    return {
      config: { type: 'irc', host: '127.0.0.1', port: server.port, tls: false, nick: 'gate' },
      // A server of IRC keeps nothing, and answers at once.
      repeats: false,
      canResolve: false,
      say: async (text) => ada.say(`PRIVMSG gate :${text}`),
      seen: (text) => ada.messages.filter((line) => line.includes(text)).length,
      holdAnswer() {},
      release() {},
      async [Symbol.asyncDispose]() {
        ada[Symbol.dispose]();
        await server[Symbol.asyncDispose]();
      },
    };
  },
};
export type ChannelPlatform = keyof typeof platforms;

/** Starts a platform. */
export const startPlatform = (name: ChannelPlatform): Promise<PlatformUnderTest> => platforms[name]();
