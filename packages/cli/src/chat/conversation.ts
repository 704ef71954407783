import { type Client, GatehouseError, NotFoundError } from '@gatehouse/client';
import { addressOf } from '../commands/sessions.ts';
import type { Io } from '../io.ts';
import type { Watched } from './live.ts';
import { runKeptTurn, runTurn, type Turn, type TurnOptions } from './turn.ts';

/** The user in session keys of terminal conversations; each token has its own conversation per key. */
export const terminalKeys = 'cli:';
export const defaultSession = `${terminalKeys}chat`;

/** Destination of messages. */
export interface Conversation {
  /** Sends a message and streams its answer. */
  ask(message: string, options: TurnOptions): Promise<Turn>;
  /** Stops what runs in it; returns whether anything did. */
  stop(): Promise<boolean>;
  /** The agent or model that answers. */
  readonly model: string;
  /** Starts over; returns the name of the new conversation if it is kept. */
  renew(): string | undefined;
  /** Absent when nothing is kept. */
  readonly kept?: KeptConversation;
}

/** A turn that the server admits only now is not found by the first attempt to stop it. */
const stopAgainMs = 400;

/** Stops the turn that was just asked for, also when the server does not have it yet. */
export async function stopTurn(conversation: Pick<Conversation, 'stop'>): Promise<void> {
  if (await conversation.stop()) return;
  await new Promise((resolve) => setTimeout(resolve, stopAgainMs));
  await conversation.stop();
}

/** Messages are sent again with each question; a failed turn leaves no trace. */
export class StatelessConversation implements Conversation {
  readonly #client: Client;
  #messages: readonly { readonly role: 'user' | 'assistant'; readonly content: string }[] = [];
  model: string;

  constructor(client: Client, model: string) {
    this.#client = client;
    this.model = model;
  }

  async ask(message: string, options: TurnOptions): Promise<Turn> {
    const messages = [...this.#messages, { role: 'user' as const, content: message }];
    const turn = await runTurn(this.#client, { model: this.model, messages }, options);
    if (turn.content !== '') this.#messages = [...messages, { role: 'assistant', content: turn.content }];
    return turn;
  }

  /** The server stops a turn whose client has left. */
  stop(): Promise<boolean> {
    return Promise.resolve(true);
  }

  renew(): undefined {
    this.#messages = [];
  }
}

/** A conversation that the daemon keeps. */
export class KeptConversation implements Conversation {
  readonly #client: Client;
  readonly #io: Pick<Io, 'now'>;
  #agentId: string | undefined;
  #name: string;
  /** Trace of the last answer here: meanwhile the conversation may have got others. */
  #traceId: string | undefined;
  #watched: Watched;

  constructor(client: Client, { agentId, name }: { readonly agentId: string | undefined; readonly name: string }, io: Pick<Io, 'now'>) {
    this.#client = client;
    this.#io = io;
    this.#agentId = agentId;
    this.#name = name;
    this.#watched = watchedOf(name, agentId);
  }

  get kept(): this {
    return this;
  }

  get model(): string {
    return `agent/${this.#watched.agentId}`;
  }

  /** Session key, or reference. */
  get name(): string {
    return this.#name;
  }

  get agentId(): string {
    return this.#watched.agentId;
  }

  get watched(): Watched {
    return this.#watched;
  }

  get address(): ReturnType<typeof addressOf> {
    return this.#watched.ref === undefined ? addressOf(this.#name, this.#agentId) : { conversationRef: this.#watched.ref };
  }

  /** Learns the reference of a conversation that exists. */
  async open(): Promise<void> {
    try {
      const { conversationRef, agentId } = await this.#client.call('session.status', addressOf(this.#name, this.#agentId));
      this.#watched = { ...this.#watched, agentId, ref: conversationRef };
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
    }
  }

  use(name: string, agentId: string | undefined): void {
    this.#name = name;
    this.#agentId = agentId;
    this.#traceId = undefined;
    this.#watched = watchedOf(name, agentId);
  }

  renew(): string {
    this.use(`${defaultSession}-${new Date(this.#io.now()).toISOString().replaceAll(/\D/g, '')}`, this.agentId);
    return this.#name;
  }

  async mark(rating: 'good' | 'bad', note: string | undefined): Promise<void> {
    await this.#client.call('session.feedback', { ...this.address, traceId: this.#traceId, rating, note });
  }

  async ask(message: string, options: TurnOptions): Promise<Turn> {
    this.#traceId = undefined;
    const watched = this.#watched;
    watched.sending = message;
    try {
      const turn = await runKeptTurn(this.#client, { message, ...this.address }, options);
      this.#traceId = turn.traceId;
      watched.ref ??= turn.conversationRef;
      return turn;
    } finally {
      watched.sending = undefined;
    }
  }

  async stop(): Promise<boolean> {
    try {
      return (await this.#client.call('session.stop', this.address)).turns > 0;
    } catch (error) {
      // The conversation does not exist yet, or the daemon is gone and the turn with it.
      if (!(error instanceof GatehouseError)) throw error;
      return false;
    }
  }
}

function watchedOf(name: string, agentId = 'default'): Watched {
  return { agentId, sessionKey: name, ref: name.startsWith('cv_') ? name : undefined, sending: undefined };
}
