import { fixed } from '../../kernel/config/live.ts';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { AgentConfig, contract, type TokenCompat, type TokenScope } from '@gatehouse/contract';
import type * as z from 'zod';
import type { Agent, AgentsApi } from '../../features/agents/agents/api.ts';
import type { EventsApi } from '../../features/operations/events/api.ts';
import type { MediaLibrary } from '../../features/environment/media/api.ts';
import type { ResponsesApi } from '../../features/conversations/responses/api.ts';
import { TokenRegistry } from '../../features/access/tokens/registry.ts';
import { digestOf } from '../../features/access/tokens/secret.ts';
import type { CompletionRequest, TurnOutcome, TurnsApi } from '../../features/conversations/turns/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { CallContext } from '../../kernel/call-context.ts';
import { type Clock, systemClock } from '../../kernel/clock.ts';
import { type BusEvent, createEventBus } from '../../kernel/event-bus.ts';
import type { Handlers } from '../../kernel/handlers.ts';
import { type Log, silentLog } from '../../kernel/log.ts';
import type { ModelInfo } from '../../llm/model.ts';
import type { Models } from '../../llm/models.ts';
import type { WebhooksApi } from '../../features/unattended/webhooks/api.ts';
import type { FailureKind, PublicFailure } from '../../runtime/turn-failure.ts';
import type { TurnSink } from '../../runtime/turn.ts';
import { createGateway, type GatewayDeps } from '../app.ts';
import { GatewayConfig } from '../config.ts';

const pepper = Buffer.from('a pepper for tests only, 32 bytes');

/** The tokens of the matrices in reliability.md §3. */
export const testTokens: Readonly<Record<'rpc' | 'api' | 'ws' | 'mcp' | 'admin' | 'all' | 'empty', string>> = {
  rpc: 'tr-secret-0123456789-abcdefghijklmnop',
  api: 'ta-secret-0123456789-abcdefghijklmnop',
  ws: 'tw-secret-0123456789-abcdefghijklmnop',
  mcp: 'tm-secret-0123456789-abcdefghijklmnop',
  admin: 'td-secret-0123456789-abcdefghijklmnop',
  all: 'ts-secret-0123456789-abcdefghijklmnop',
  empty: 'te-secret-0123456789-abcdefghijklmnop',
};
export const wrongToken = 'tx-secret-0123456789-abcdefghijklmnop';

const scopesOf: Readonly<Record<keyof typeof testTokens, readonly TokenScope[]>> = {
  rpc: ['rpc'],
  api: ['api'],
  ws: ['ws'],
  mcp: ['mcp-client'],
  admin: ['admin'],
  all: ['*'],
  empty: ['*'],
};

export const testModel: ModelInfo = {
  provider: 'local',
  modelId: 'test-model',
  displayName: 'Test',
  contextWindow: 8_192,
  maxTokens: 1_024,
  input: ['text'],
  reasoning: false,
  price: null,
  validated: true,
};

type ScriptedOutcome = Omit<Partial<TurnOutcome>, 'failure'> & { readonly failure?: PublicFailure };
export type ScriptedTurn = (request: CompletionRequest, call: CallContext, sink?: TurnSink) => Promise<ScriptedOutcome>;

export interface FixtureOptions {
  readonly config?: z.input<typeof GatewayConfig>;
  readonly clock?: Clock;
  readonly log?: Log;
  readonly turn?: ScriptedTurn;
  readonly handlers?: Partial<Handlers>;
  readonly deps?: Partial<GatewayDeps>;
}

/** Starts a gateway on a free port with real tokens, methods that return their first example, and scripted turns. */
export async function startGateway(options: FixtureOptions = {}) {
  const clock = options.clock ?? systemClock;
  const tokens = new TokenRegistry(pepper, clock);
  const putToken = (id: string, secret: string, scopes: readonly TokenScope[], agents?: readonly string[], compat?: TokenCompat): void =>
    tokens.put({ id, digest: digestOf(pepper, secret), source: 'created', scopes, agents, compat });
  for (const [id, secret] of Object.entries(testTokens)) putToken(id, secret, scopesOf[id as keyof typeof testTokens]);

  const events: BusEvent[] = [];
  const bus = createEventBus((error) => {
    throw error;
  });
  bus.listen('all', (event) => void events.push(event));

  const calls: string[] = [];
  const examples = Object.fromEntries(
    Object.entries(contract).map(([name, method]) => [
      name,
      async () => {
        calls.push(name);
        return method.examples[0]?.result;
      },
    ]),
  ) as unknown as Handlers;

  const gateway = createGateway({
    config: fixed(GatewayConfig.parse({ port: 0, rateLimit: { maxRequests: 10_000 }, ...options.config })),
    handlers: { ...examples, ...options.handlers },
    tokens,
    turns: scriptedTurns(options.turn),
    responses: noResponses,
    media: noMedia,
    events: noEvents,
    webhooks: noWebhooks,
    authorization: { finish: () => Promise.reject(new Error('not scripted')) },
    receipts: { execute: () => Promise.reject(new Error('not scripted')) },
    sessions: { said: () => Promise.reject(new Error('not scripted')), target: () => Promise.reject(new Error('not scripted')) },
    version: '0.0.0',
    primaryModel: () => testModel,
    models: scriptedModels,
    agents: scriptedAgents,
    embed: undefined,
    payerOf: () => 'default',
    health: () => ({ status: 'ok', version: '0.0.0', uptimeMs: 1, checks: {} }),
    documents: { openapi: () => ({ openapi: '3.1.0' }), openrpc: () => ({ openrpc: '1.3.2' }), asyncapi: () => ({ asyncapi: '3.0.0' }) },
    metrics: async () => '',
    bus,
    clock,
    log: options.log ?? silentLog,
    homeDir: tmpdir(),
    ...options.deps,
  });
  const { address } = await gateway.listen();
  return {
    gateway,
    address,
    port: Number(new URL(address).port),
    tokens,
    putToken,
    events,
    calls,
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

export const outcome: TurnOutcome = {
  finishReason: 'stop',
  text: 'Hello',
  tainted: false,
  tokensUsed: { input: 12, output: 3, total: 15 },
  cachedInput: 0,
  costUsd: 0,
  model: 'mock/mock-fast',
  conversationRef: 'cv_x',
  sessionKey: 'compat-api:compat:x',
  agentId: 'default',
  turnId: 'tn_x',
  traceId: '0'.repeat(32),
};

const noEvents: EventsApi = {
  lastId: () => 0,
  follow: () => () => {},
  need: () => () => {},
  after: (id) => ({ entries: [], next: id }),
  recent: async () => [],
  find: async () => [],
  digest: async () => ({ events: [], counts: {} }),
  viewOf: () => () => true,
};

function scriptedTurns(turn: ScriptedTurn = async () => ({})): TurnsApi {
  return {
    execute: () => Promise.reject(new Error('not scripted')),
    attach: () => Promise.reject(new Error('not scripted')),
    steer: () => Promise.reject(new Error('not scripted')),
    runDurably: () => Promise.reject(new Error('not scripted')),
    announce: () => Promise.reject(new Error('not scripted')),
    evaluate: () => Promise.reject(new Error('not scripted')),
    replay: () => Promise.reject(new Error('not scripted')),
    countInput: async () => 42,
    complete: async (request, call, sink) => {
      const { failure, ...scripted } = await turn(request, call, sink);
      const kind = failure?.kind as FailureKind;
      return { ...outcome, ...scripted, ...(failure !== undefined && { failure: { ...failure, kind, transient: false } }) };
    },
    counts: () => ({ running: 0, queued: 0 }),
  };
}

const noWebhooks: WebhooksApi = {
  path: '/hooks',
  rateLimit: () => ({}),
  open: () => {
    throw new AppError('not_found', 'No matching webhook mapping');
  },
};

const notThere = () => Promise.reject(new AppError('not_found', 'Media file not found'));
const noMedia: MediaLibrary = {
  maxFileBytes: 1024,
  find: notThere,
  open: notThere,
  remove: notThere,
  save: notThere,
  read: async () => undefined,
  list: async () => ({ media: [], total: 0, totalBytes: 0 }),
};

const noResponse = () => Promise.reject(new AppError('not_found', 'Response not found'));
const noResponses: ResponsesApi = {
  keepCall: (input) => ({ operation: 'responses.keep', input }),
  history: noResponse,
  get: noResponse,
  input: noResponse,
  delete: noResponse,
};

const scriptedModels: Models = {
  providers: () => [],
  list: () => [testModel, { ...testModel, modelId: 'org/second' }],
  resolve: () => testModel,
  defaultModel: () => testModel,
  unsupported: () => undefined,
  effortsOf: () => [],
  generate: () => Promise.reject(new Error('not scripted')),
  states: () => [],
  clearState: () => {},
  watch: () => {},
  onRecovered: () => () => {},
  async [Symbol.asyncDispose]() {},
};

const agent = (id: string): Agent => ({
  id,
  config: AgentConfig.parse({}),
  source: 'file',
  suspended: false,
  isDefault: id === 'default',
  workspaceDir: '',
});
const scriptedAgents: AgentsApi = {
  defaultId: 'default',
  list: () => [agent('default'), agent('helper')],
  find: (id) => agent(id),
  usable: (id) => agent(id ?? 'default'),
};

/** Sends a POST as clients do. */
export function post(url: string, token: string | undefined, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token !== undefined && { authorization: `Bearer ${token}` }), ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

/** Writes raw bytes to the port and resolves with all that comes back until the server closes or `waitMs` pass. */
export function rawExchange(port: number, bytes: string | Buffer, waitMs = 2_000): Promise<{ readonly text: string; readonly closed: boolean }> {
  return new Promise((resolve) => {
    let text = '';
    const socket = net.connect(port, '127.0.0.1', () => socket.write(bytes));
    const timer = setTimeout(() => finish(false), waitMs);
    const finish = (closed: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ text, closed });
    };
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.on('error', () => {});
    socket.on('close', () => finish(true));
  });
}
