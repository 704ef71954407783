import type { ActivityList, ApiAgents, EventKind, Health, ModelObject } from '@gatehouse/contract';
import {
  type BatchEntry,
  type BatchOutcomes,
  type Call,
  type CallByName,
  type CallOptions,
  readReply,
  type Reply,
  type RpcRequestMessage,
} from './calls.ts';
import { type Chat, createChat, type StreamChat } from './chat.ts';
import { createError } from './errors.ts';
import { createEvents, type Events } from './events.ts';
import { createHttp, type HttpOptions } from './http.ts';
import { createMedia, type MediaCalls } from './media.ts';
import { readMethods } from './read-methods.ts';
import { defaultRetry, type RetryOptions, withRetry } from './retry.ts';
import { createTurns, type StreamTurn, type TakeTurn } from './turn.ts';

export interface ClientOptions extends HttpOptions {
  /** Retry policy for reads; a call with side effects is never retried. */
  readonly retry?: Partial<RetryOptions>;
}

export interface Client extends MediaCalls {
  /** Calls one method by `POST /rpc`. Throws a GatehouseError. */
  readonly call: Call;
  readonly callByName: CallByName;
  /** Sends up to 50 calls in one request and returns an outcome for each, in order. */
  batch<const Entries extends readonly BatchEntry[]>(entries: Entries, options?: CallOptions): Promise<BatchOutcomes<Entries>>;
  /** `GET /health`. */
  health(options?: CallOptions): Promise<Health>;
  /** `GET /v1/models`: returns configured models and, as `agent/<id>`, the agents. */
  models(options?: CallOptions): Promise<ModelObject[]>;
  /** `GET /api/agents`: returns the agents that the token may reach, with their names. */
  agents(options?: CallOptions): Promise<ApiAgents['agents']>;
  /** Runs a turn in a kept conversation and returns the whole answer. */
  readonly turn: TakeTurn;
  /** Runs a turn and streams the answer; resumes after a broken connection. */
  readonly streamTurn: StreamTurn;
  /** Streams the events of the server, from now on or after an earlier event. */
  readonly events: Events;
  /** `GET /api/activity`: returns the newest events that the token may see and that match, oldest first; at most `limit` (default 50, maximum 100). */
  activity(page?: ActivityPage, options?: CallOptions): Promise<ActivityList>;
  /** Returns a complete completion. */
  readonly chat: Chat;
  /** Streams a completion. */
  readonly streamChat: StreamChat;
}

/** Filters of `activity`; times in milliseconds since the epoch. */
export interface ActivityPage {
  readonly limit?: number;
  /** Id of an event: only earlier ones. */
  readonly before?: number | undefined;
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  readonly kind?: EventKind | undefined;
}

const readTimeoutMs = 60_000;
const changeTimeoutMs = 660_000;

/** Creates a client of one gateway over HTTP, typed by the contract. It keeps no connection and needs no closing. */
export function createClient(options: ClientOptions): Client {
  const http = createHttp(options);
  const retry: RetryOptions = { ...defaultRetry, ...options.retry };

  async function call(method: string, params: object = {}, { signal, timeoutMs }: CallOptions = {}): Promise<unknown> {
    const isRead = readMethods.has(method);
    const message: RpcRequestMessage = { jsonrpc: '2.0', id: 1, method, params };
    const attempt = async () => {
      const { body } = await http.json({
        method: 'POST',
        path: '/rpc',
        body: message,
        signal,
        timeoutMs: timeoutMs ?? (isRead ? readTimeoutMs : changeTimeoutMs),
      });
      const { outcome } = readReply(body);
      if (!outcome.ok) throw outcome.error;
      return outcome.result;
    };
    return isRead ? await withRetry(attempt, retry, signal) : await attempt();
  }

  async function batch(entries: readonly BatchEntry[], { signal, timeoutMs = changeTimeoutMs }: CallOptions = {}): Promise<Reply['outcome'][]> {
    if (entries.length === 0) return [];
    const messages = entries.map(({ method, params }, id): RpcRequestMessage => ({ jsonrpc: '2.0', id, method, params: params ?? {} }));
    const { body } = await http.json({ method: 'POST', path: '/rpc', body: messages, signal, timeoutMs });
    if (!Array.isArray(body)) {
      const { outcome } = readReply(body);
      throw outcome.ok ? createError({ code: 'bad_reply', message: 'The server answered a batch with a single reply.' }) : outcome.error;
    }
    const replies = new Map(body.map(readReply).map(({ id, outcome }) => [id, outcome]));
    return entries.map(
      (_, id) =>
        replies.get(id) ?? { ok: false, error: createError({ code: 'bad_reply', message: 'The server left this call of the batch unanswered.' }) },
    );
  }

  function get(path: string, { signal, timeoutMs = readTimeoutMs }: CallOptions): Promise<unknown> {
    return withRetry(async () => (await http.json({ method: 'GET', path, signal, timeoutMs })).body, retry, signal);
  }

  return {
    // The only place where an answer gets its type: the server guarantees the contract of results.
    call: call as Call,
    callByName: call,
    batch: batch as Client['batch'],
    health: async (callOptions = {}) => (await get('/health', callOptions)) as Health,
    models: async (callOptions = {}) => ((await get('/v1/models', callOptions)) as { data: ModelObject[] }).data,
    agents: async (callOptions = {}) => ((await get('/api/agents', callOptions)) as ApiAgents).agents,
    ...createTurns(http, changeTimeoutMs),
    events: createEvents(http),
    activity: async (page = {}, callOptions = {}) => (await get(`/api/activity?${queryOf(page)}`, callOptions)) as ActivityList,
    ...createMedia(http, { retry, readTimeoutMs, changeTimeoutMs }),
    ...createChat(http, changeTimeoutMs),
  };
}

function queryOf({ limit = 50, ...filter }: ActivityPage): string {
  return Object.entries({ limit, ...filter })
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`]))
    .join('&');
}
