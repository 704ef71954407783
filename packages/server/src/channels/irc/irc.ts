import { hash, randomUUID } from 'node:crypto';
import type { Adapter, AdapterDeps, Ended, OpenWire, OutgoingPart, Place, SendResult, Sink } from '../port.ts';
import type { ActName, ActResult } from './acts.ts';
import type { IrcKeys } from './config.ts';
import { IrcConnection } from './connection.ts';
import { formatLine } from './line.ts';

export interface IrcConfig extends IrcKeys {
  /** Silence after which the server is asked for a sign of life, and time that it has for it. */
  readonly pingMs?: number;
  readonly pongMs?: number;
}

/** Longest line that a server reads, without tags and with its end. */
const longestSent = 512;

export const openIrc: OpenWire<IrcConfig> = (deps) => new IrcAdapter(deps);

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

  async send(
    { conversationId, recipients = [], text }: OutgoingPart,
    { key, signal }: { readonly key: string; readonly signal: AbortSignal },
  ): Promise<SendResult> {
    if (/[\s,\0]|^:|^$/.test(conversationId)) return { is: 'rejected', kind: 'target', text: `Not a nick or channel: ${conversationId}` };
    if (text === '') return { is: 'rejected', kind: 'no_text', text: 'The text is empty' };
    if (Buffer.byteLength(formatLine('PRIVMSG', [conversationId, text])) > longestSent)
      return { is: 'rejected', kind: 'too_long', text: `The text does not fit into a line of ${longestSent} bytes` };
    if (this.#connection === undefined) return { is: 'notSent', text: 'The server is not connected' };
    if (recipients.length > 0 && !isChannel(conversationId)) {
      const refused = await this.#checkHolder(conversationId, recipients);
      if (refused !== undefined) return refused;
      if (this.#connection === undefined) return { is: 'notSent', text: 'The server is not connected' };
    }
    return this.#connection.say(conversationId, text, hash('sha256', key).slice(0, 24), signal);
  }

  /** A nick can be taken by anybody once it is free: nothing goes to somebody else. Of one that nobody has, the server says so. */
  async #checkHolder(nick: string, recipients: readonly string[]): Promise<SendResult | undefined> {
    const holder = await this.#connection?.holderOf(nick);
    if (holder === 'unclear') return { is: 'notSent', text: `The server did not say who has the nick ${nick}` };
    if (holder === undefined || holder.some((id) => recipients.includes(id))) return undefined;
    return {
      is: 'rejected',
      kind: 'identity',
      text: `Somebody else has the nick ${nick} now (${holder.join(', ')}): expected ${recipients.join(' or ')}`,
    };
  }

  async action(
    name: string,
    params: Readonly<Record<string, unknown>>,
    { conversationId }: Place,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<ActResult> {
    if (name === 'sendTyping') return { is: 'done', value: { typing: false } };
    if (!isAct(name)) return { is: 'failed', kind: 'invalid', text: `Unsupported action: ${name} on irc` };
    const channel = name === 'join' ? params['channel'] : conversationId;
    if (typeof channel !== 'string' || !isChannel(channel)) return { is: 'failed', kind: 'invalid', text: 'Not the name of a channel' };
    if (typeof params['key'] === 'string' && !/^[^\s:,\0][^\s,\0]*$/.test(params['key']))
      return { is: 'failed', kind: 'invalid', text: 'The key is not one word' };
    if (this.#connection === undefined) return { is: 'failed', kind: 'unavailable', text: 'The server is not connected' };
    return this.#connection.act(name, channel, params, randomUUID(), signal);
  }
}

const isAct = (name: string): name is ActName => ['join', 'part', 'topic', 'names'].includes(name);
/** A comma would make two of one. */
const isChannel = (text: string): boolean => Buffer.byteLength(text) <= 64 && /^[#&+!][^\s,\0\x07]+$/.test(text);
