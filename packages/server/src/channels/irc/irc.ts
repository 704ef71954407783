import { hash } from 'node:crypto';
import type { Adapter, AdapterDeps, Ended, OutgoingPart, Platform, SendResult, Sink } from '../port.ts';
import { IrcConnection } from './connection.ts';
import { formatLine } from './line.ts';

/** What the wire needs of the configuration. */
export interface IrcConfig {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  /** File with the authorities that TLS trusts, instead of the public ones. */
  readonly tlsCaPath?: string | undefined;
  readonly nick: string;
  readonly username?: string | undefined;
  readonly realName?: string | undefined;
  readonly serverPassword?: string | undefined;
  readonly saslUser?: string | undefined;
  readonly saslPassword?: string | undefined;
  readonly channels: readonly string[];
  /** Silence after which the server is asked for a sign of life, and time that it has for it. */
  readonly pingMs?: number | undefined;
  readonly pongMs?: number | undefined;
}

/** Longest line that a server reads, without tags and with its end. */
const longestSent = 512;

const none = {
  reactions: false,
  editMessages: false,
  deleteMessages: false,
  fetchHistory: false,
  attachments: false,
  buttons: false,
  polls: false,
  voiceNotes: false,
  typing: false,
};

/** IRC (RFC 1459) with the capabilities of IRCv3 that a server offers. */
export const irc: Platform<IrcConfig> = {
  capabilities: {
    channelType: 'irc',
    features: { ...none, mentions: true },
    limits: { text: 400, textUnit: 'bytes', attachmentBytes: 0 },
    streaming: 'none',
    threading: 'none',
    chatTypes: ['direct', 'shared'],
    sendKey: 'label',
    actions: [],
  },
  rate: { burst: 4, perSecond: 1 },
  open: (deps) => new IrcAdapter(deps),
};

class IrcAdapter implements Adapter {
  readonly #deps: AdapterDeps<IrcConfig>;
  #connection: IrcConnection | undefined;

  constructor(deps: AdapterDeps<IrcConfig>) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal, sink: Sink): Promise<Ended> {
    const connection = new IrcConnection(this.#deps, signal, sink);
    this.#connection = connection;
    try {
      return await connection.run();
    } finally {
      this.#connection = undefined;
    }
  }

  async send({ conversationId, text }: OutgoingPart, { key, signal }: { readonly key: string; readonly signal: AbortSignal }): Promise<SendResult> {
    if (/[\s,\0]|^:|^$/.test(conversationId)) return { is: 'rejected', kind: 'target', text: `Not a nick or channel: ${conversationId}` };
    if (text === '') return { is: 'rejected', kind: 'no_text', text: 'The text is empty' };
    if (Buffer.byteLength(formatLine('PRIVMSG', [conversationId, text])) > longestSent)
      return { is: 'rejected', kind: 'too_long', text: `The text does not fit into a line of ${longestSent} bytes` };
    if (this.#connection === undefined) return { is: 'notSent', text: 'The server is not connected' };
    return this.#connection.say(conversationId, text, hash('sha256', key).slice(0, 24), signal);
  }
}
