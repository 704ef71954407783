import type {
  Act,
  Adapter,
  AdapterDeps,
  Download,
  Ended,
  FetchedMessage,
  LookUp,
  MessageRef,
  OpenWire,
  OutgoingPart,
  Place,
  SendResult,
  Sink,
} from '../port.ts';
import { runAction } from './actions.ts';
import { failureOf, refusalText, SlackClient } from './client.ts';
import type { SlackKeys as SlackConfig } from './config.ts';
import { openFile } from './download.ts';
import { emojiName } from './emoji.ts';
import { fetchMessages } from './fetch.ts';
import type { Identity } from './message.ts';
import { People } from './people.ts';
import { slack } from './platform.ts';
import { Sends } from './sends.ts';
import { Session } from './session.ts';

interface Options {
  readonly signal: AbortSignal;
}

export const openSlack: OpenWire<SlackConfig> = (deps) => new SlackAdapter(deps);

class SlackAdapter implements Adapter {
  readonly #deps: AdapterDeps<SlackConfig>;
  readonly #client: SlackClient;
  readonly #people: People;
  readonly #sends: Sends;
  readonly #deaf = new Set<string>();
  #identity: Identity | undefined;
  #session: Session | undefined;
  #cursor: string | undefined;

  constructor(deps: AdapterDeps<SlackConfig>) {
    const { clock, config } = deps;
    this.#deps = deps;
    this.#client = new SlackClient({
      botToken: config.botToken,
      apiUrl: config.apiUrl,
      clock,
      onUnauthorized: (error) => this.#session?.refuse({ ended: 'unauthorized', text: refusalText(error) }),
    });
    this.#people = new People(this.#client, clock);
    this.#sends = new Sends({ client: this.#client, clock, apiUrl: config.apiUrl, identity: () => this.#identity });
  }

  async run(signal: AbortSignal, sink: Sink): Promise<Ended> {
    const session = new Session({
      deps: this.#deps,
      client: this.#client,
      people: this.#people,
      sink,
      signal,
      cursor: this.#cursor,
      onStored: (cursor) => (this.#cursor = cursor),
      onIdentity: (self) => (this.#identity = self),
      deaf: this.#deaf,
    });
    this.#session = session;
    try {
      return await session.run();
    } finally {
      this.#session = undefined;
    }
  }

  send(part: OutgoingPart, options: Options & { readonly key: string }): Promise<SendResult> {
    return this.#sends.send(part, options);
  }

  lookUp(part: OutgoingPart, options: Options & { readonly key: string; readonly sinceMs: number }): Promise<LookUp> {
    return this.#sends.lookUp(part, options);
  }

  edit(message: MessageRef, part: Pick<OutgoingPart, 'text' | 'markup' | 'buttons'>, { signal }: Options): Promise<Act<object>> {
    return this.#sends.edit(message, part, signal);
  }

  remove({ conversationId, messageId }: MessageRef, { signal }: Options): Promise<Act<object>> {
    return this.#act('chat.delete', { channel: conversationId, ts: messageId }, signal);
  }

  react(message: MessageRef, emoji: string, { signal }: Options): Promise<Act<object>> {
    return this.#reaction('reactions.add', 'already_reacted', message, emoji, signal);
  }

  unreact(message: MessageRef, emoji: string, { signal }: Options): Promise<Act<object>> {
    return this.#reaction('reactions.remove', 'no_reaction', message, emoji, signal);
  }

  fetch(
    place: Place,
    { signal, limit, before }: Options & { readonly limit: number; readonly before?: string | undefined },
  ): Promise<Act<readonly FetchedMessage[]>> {
    return fetchMessages({ client: this.#client, people: this.#people, self: this.#identity }, place, { limit, before, signal });
  }

  download(ref: string, { signal }: Options): Promise<Download> {
    const { clock, config } = this.#deps;
    const { apiUrl, botToken } = config;
    return openFile({ client: this.#client, clock, apiUrl, botToken, maxBytes: slack.capabilities.limits.attachmentBytes }, ref, signal);
  }

  action(
    name: string,
    params: Readonly<Record<string, unknown>>,
    place: Place,
    { signal }: Options,
  ): Promise<Act<Readonly<Record<string, unknown>>>> {
    return runAction(this.#client, name, params, place, signal);
  }

  /** `isDone`: the error that says that it was so before. */
  async #reaction(
    method: string,
    isDone: string,
    { conversationId, messageId }: MessageRef,
    emoji: string,
    signal: AbortSignal,
  ): Promise<Act<object>> {
    const name = emojiName(emoji);
    if (name === undefined) return { is: 'failed', kind: 'invalid', text: 'Slack knows this emoji by a name only: write it as :name:' };
    return this.#act(method, { channel: conversationId, timestamp: messageId, name }, signal, isDone);
  }

  async #act(method: string, args: Readonly<Record<string, unknown>>, signal: AbortSignal, isDone?: string): Promise<Act<object>> {
    const answer = await this.#client.call(method, args, signal);
    if (answer.is === 'ok' || (answer.is === 'refused' && answer.error === isDone)) return { is: 'done', value: {} };
    return failureOf(answer);
  }
}
