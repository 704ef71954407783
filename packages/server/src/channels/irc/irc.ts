import { hash } from 'node:crypto';
import type { Adapter, AdapterDeps, Ended, OpenWire, OutgoingPart, SendResult, Sink } from '../port.ts';
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

  async send({ conversationId, text }: OutgoingPart, { key, signal }: { readonly key: string; readonly signal: AbortSignal }): Promise<SendResult> {
    if (/[\s,\0]|^:|^$/.test(conversationId)) return { is: 'rejected', kind: 'target', text: `Not a nick or channel: ${conversationId}` };
    if (text === '') return { is: 'rejected', kind: 'no_text', text: 'The text is empty' };
    if (Buffer.byteLength(formatLine('PRIVMSG', [conversationId, text])) > longestSent)
      return { is: 'rejected', kind: 'too_long', text: `The text does not fit into a line of ${longestSent} bytes` };
    if (this.#connection === undefined) return { is: 'notSent', text: 'The server is not connected' };
    return this.#connection.say(conversationId, text, hash('sha256', key).slice(0, 24), signal);
  }
}
