import * as z from 'zod';
import type { RouteScope } from '../scopes.ts';
import { ApiChatGap, ApiChatRequest, ApiChatResult, ApiChatToken } from './api-chat.ts';
import { ApiAgents, ApiChannels, ApiChatHistory } from './api-lists.ts';
import { ApiMemorySearch, ApiMemoryStats } from './api-memory.ts';
import { ActivityList } from './events.ts';
import { Health, HttpError } from './health.ts';
import { WebhookPayload, WebhookReceived } from './hooks.ts';
import { MediaInfo, MediaList } from './media.ts';
import { RpcReply, RpcRequest } from './rpc.ts';
import { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest } from './v1-chat.ts';
import { ExtendedChatCompletionRequest } from './v1-chat-extended.ts';
import { EmbeddingRequest, EmbeddingResponse, ExtendedEmbeddingRequest } from './v1-embeddings.ts';
import { CountTokensRequest, MessageObject, MessagesRequest, MessageStreamEvent, TokenCount } from './v1-messages.ts';
import { ModelList, ModelObject } from './v1-models.ts';
import { ResponseStreamEvent } from './v1-responses-events.ts';
import { ResponseCompaction, ResponseCompactRequest, ResponseInputItems, ResponseTokens, ResponseTokensRequest } from './v1-responses-more.ts';
import { ResponseDeleted, ResponseObject, ResponseRequest } from './v1-responses.ts';

/** Which shape the errors of a route have: the `/v1` body, that of `/v1/messages`, `{error, code, requestId}`, or a JSON-RPC reply. */
export type RouteFamily = 'v1' | 'messages' | 'api' | 'rpc';

/** One HTTP route, declared once: the router, the scope check, the rate limiter and the OpenAPI document read it from here. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** `:name` spans one segment, a trailing `*name` all that remain. */
  readonly path: string;
  readonly scope: RouteScope;
  readonly family: RouteFamily;
  /** False only for the two health routes (http-gateway.md §8). */
  readonly rateLimited: boolean;
  /** Callers show who they are by a signature of what they send; an `Authorization` header of theirs is not looked at. */
  readonly signed?: true;
  /** `x-api-key` is read too, as the same bearer token. */
  readonly apiKey?: true;
  readonly summary: string;
  readonly body?: z.ZodType;
  readonly response?: z.ZodType;
  /** Types of a body that is not JSON, each with what it holds; none when there is no body. */
  readonly rawBody?: Readonly<Record<string, string>>;
  /** Statuses of failure beyond those that follow from the rest. */
  readonly failures?: readonly number[];
  /** What the answer holds when it is bytes of any type. */
  readonly rawResponse?: string;
  /** Status of success; 200 otherwise. */
  readonly success?: 201 | 204;
  /** Shape of one data line when the answer is an event stream. */
  readonly streamed?: z.ZodType;
  /** What an event stream is like whose events have shapes of their own. */
  readonly streamText?: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Request headers that the route reads besides the common ones. */
  readonly headers?: Readonly<Record<string, string>>;
}

const document = z.looseObject({});
const signatureHeaders = {
  'X-Webhook-Signature':
    'HMAC of the raw body under the shared secret: hex in either case, bare or behind `sha256=`. Other names by the configuration.',
  'X-Webhook-Timestamp': 'When it was sent, in Unix seconds; part of what is signed where the configuration says so.',
};
const messagesHeaders = {
  'x-api-key': 'The token, in place of `Authorization: Bearer`. With an `Authorization` that differs: 401.',
  'anthropic-version': 'Accepted, whatever it names.',
  'anthropic-beta': 'Accepted; not passed on to providers.',
};
const idempotencyKey =
  '1 to 255 visible ASCII characters. Within 24 hours the same key with the same body attaches to the running turn or returns its first outcome, unless that was 429 or 503; with another body it is a conflict.';

/** Which body a route takes is the gateway's setting or the token's. */
const compatWords = 'The first with compat.fields: strict (the default), the second with compat.fields: extended, of the gateway or of the token.';

/** Every route of the gateway (http-gateway.md §4). What is not here is a 404. */
export const routes = {
  health: {
    method: 'GET',
    path: '/health',
    scope: 'none',
    family: 'api',
    rateLimited: false,
    summary: 'Liveness and, with `?ready`, readiness.',
    response: Health,
    query: { ready: 'When given: 503 until the daemon is ready and while it drains.' },
  },
  apiHealth: {
    method: 'GET',
    path: '/api/health',
    scope: 'none',
    family: 'api',
    rateLimited: false,
    summary: 'The same as `/health`.',
    response: Health,
    query: { ready: 'When given: 503 until the daemon is ready and while it drains.' },
  },
  chatCompletions: {
    method: 'POST',
    path: '/v1/chat/completions',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: 'Runs one agent turn over the given messages, in a conversation of its own that is not kept.',
    body: z.union([ChatCompletionRequest, ExtendedChatCompletionRequest]).describe(compatWords),
    response: ChatCompletion,
    streamed: ChatCompletionChunk,
  },
  models: {
    method: 'GET',
    path: '/v1/models',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: 'Lists the configured models and the agents.',
    response: ModelList,
  },
  model: {
    method: 'GET',
    path: '/v1/models/*id',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: 'Returns one model; the id contains a slash, given as it is or percent-encoded.',
    response: ModelObject,
  },
  embeddings: {
    method: 'POST',
    path: '/v1/embeddings',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: 'Turns texts into vectors.',
    body: z.union([EmbeddingRequest, ExtendedEmbeddingRequest]).describe(compatWords),
    response: EmbeddingResponse,
  },
  messages: {
    method: 'POST',
    path: '/v1/messages',
    scope: 'v1',
    family: 'messages',
    rateLimited: true,
    apiKey: true,
    summary: "Runs one agent turn over the given messages, in the shape of Anthropic's Messages API; nothing of it is kept.",
    headers: messagesHeaders,
    body: MessagesRequest,
    response: MessageObject,
    streamed: MessageStreamEvent,
    streamText:
      'With `stream: true`: events of the names and shapes of `x-event`; `ping` events keep the connection alive. A failure after the first byte is the event `error`, the last one.',
  },
  countTokens: {
    method: 'POST',
    path: '/v1/messages/count_tokens',
    scope: 'v1',
    family: 'messages',
    rateLimited: true,
    apiKey: true,
    summary: 'Estimates how many input tokens a message would be; no model is called.',
    headers: messagesHeaders,
    body: CountTokensRequest,
    response: TokenCount,
  },
  createResponse: {
    method: 'POST',
    path: '/v1/responses',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: 'Runs one agent turn in the shape of Open Responses, over the given input and what came before it.',
    body: ResponseRequest,
    response: ResponseObject,
    streamed: ResponseStreamEvent,
    streamText:
      'With `stream: true`: events of the names and shapes of `x-event`, then `data: [DONE]`; comment lines keep the connection alive. A failure after the first byte is the event `response.failed`.',
  },
  responsesSocket: {
    method: 'GET',
    path: '/v1/responses',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary:
      'The WebSocket form: each text frame is a response request with `type: "response.create"`; events come back one a frame, and failures before the first of them as `{type: "error", status, error}`.',
    failures: [426],
  },
  compactResponse: {
    method: 'POST',
    path: '/v1/responses/compact',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: 'Condenses a conversation into an item that takes its place as the input of a new one; a model writes the summary.',
    body: ResponseCompactRequest,
    response: ResponseCompaction,
  },
  responseTokens: {
    method: 'POST',
    path: '/v1/responses/input_tokens',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: 'Estimates how many input tokens a response would take; no model is called.',
    body: ResponseTokensRequest,
    response: ResponseTokens,
  },
  responseInputItems: {
    method: 'GET',
    path: '/v1/responses/:id/input_items',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: 'Lists the input of a stored response.',
    query: {
      limit: 'Items, 1 to 100; 20 otherwise.',
      order: '`asc` or `desc`; the last item first otherwise.',
      after: 'Id of an item: those behind it.',
    },
    response: ResponseInputItems,
  },
  cancelResponse: {
    method: 'POST',
    path: '/v1/responses/:id/cancel',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: 'Refused with 400: there are no background responses, and one that streams ends with its connection.',
    rawBody: {},
    failures: [400],
  },
  response: {
    method: 'GET',
    path: '/v1/responses/:id',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: 'Returns a stored response.',
    response: ResponseObject,
  },
  deleteResponse: {
    method: 'DELETE',
    path: '/v1/responses/:id',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: 'Deletes a stored response; what follows it cannot be continued any more.',
    response: ResponseDeleted,
  },
  apiChat: {
    method: 'POST',
    path: '/api/chat',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'Runs one agent turn in a conversation and answers with the whole of it.',
    headers: { 'Idempotency-Key': idempotencyKey },
    body: ApiChatRequest,
    response: ApiChatResult,
  },
  apiChatStream: {
    method: 'POST',
    path: '/api/chat/stream',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'The same as an event stream: `token` events with the new text, then `done` with the answer of `/api/chat`, or `error`.',
    headers: {
      'Idempotency-Key': idempotencyKey,
      'Last-Event-ID':
        'With a key: the id of the last `token` event that the client has; the stream goes on behind it, after a `gap` event where it cannot.',
    },
    body: ApiChatRequest,
    streamed: z.union([ApiChatToken, ApiChatGap, ApiChatResult, HttpError]),
    streamText:
      'Events: `token` with `{delta}` (and an `id` under an Idempotency-Key), `gap` with `{resumesAt}`, and last `done` with the answer of `/api/chat` or `error` with the error body; comment lines keep the connection alive.',
  },
  apiChatHistory: {
    method: 'GET',
    path: '/api/chat/history',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'What was said in a conversation, oldest first; in that of the token when none is named.',
    query: {
      conversationRef: 'The conversation.',
      sessionKey: 'The conversation by its printed key.',
      channelId: 'The conversation of the token on this channel.',
      agentId: 'The agent of the conversation, the default agent otherwise.',
      limit: 'Messages, 1 to 200; 50 otherwise.',
      offset: 'Messages to pass over.',
    },
    response: ApiChatHistory,
  },
  events: {
    method: 'GET',
    path: '/api/events',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'What happens in the system, as an event stream: all that the token may see. A token in the query is refused.',
    query: { kinds: 'Only these kinds, separated by commas.' },
    headers: { 'Last-Event-ID': 'The id of the last event that the client has; what came after it is sent first. 0 asks for all that is kept.' },
    streamText:
      'First `retry: 3000` and the id to go on after. Then one event per kind of docs/reference/events.md, with `id`, `event` and its payload as `data`; transient kinds have no id. `gap` (shape `EventGap`) says that events were missed and cannot be sent any more, `ping` comes every 15 seconds, `bye` before a stop, `error` when the token ends.',
  },
  activity: {
    method: 'GET',
    path: '/api/activity',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'The newest events that the token may see, oldest first.',
    query: { limit: 'At most so many, 1 to 100; 50 otherwise.' },
    response: ActivityList,
  },
  apiAgents: {
    method: 'GET',
    path: '/api/agents',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'The agents that the token may reach.',
    response: ApiAgents,
  },
  apiChannels: {
    method: 'GET',
    path: '/api/channels',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'The channels by which messages come and go.',
    response: ApiChannels,
  },
  apiMemorySearch: {
    method: 'GET',
    path: '/api/memory/search',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'Finds memories of an agent by words and by meaning, best first.',
    query: {
      q: 'What is looked for, 1 to 32768 characters.',
      limit: 'At most so many, 1 to 100; 10 otherwise.',
      agentId: 'The default agent otherwise.',
    },
    response: ApiMemorySearch,
  },
  apiMemoryStats: {
    method: 'GET',
    path: '/api/memory/stats',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'Counts the memories that the caller may see.',
    query: { agentId: 'Every agent within reach otherwise.' },
    response: ApiMemoryStats,
  },
  dashboard: {
    method: 'GET',
    path: '/',
    scope: 'none',
    family: 'api',
    rateLimited: true,
    summary: 'The dashboard, a page for the browser; further paths that a browser asks for as a page lead to it too.',
  },
  dashboardAsset: {
    method: 'GET',
    path: '/assets/*file',
    scope: 'none',
    family: 'api',
    rateLimited: true,
    summary: 'A file of the dashboard; its name changes with its content.',
  },
  mediaUpload: {
    method: 'POST',
    path: '/media',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'Stores one file for the caller. Its bytes decide its type; a declared one only chooses among kinds of text.',
    query: { fileName: 'Name of the file, for a raw body.' },
    rawBody: { 'multipart/form-data': 'One part named `file`.', '*/*': 'The bytes of the file.' },
    response: MediaInfo,
    success: 201,
  },
  mediaList: {
    method: 'GET',
    path: '/media',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'The media of the caller, of everyone for an admin; newest first.',
    query: { limit: 'Media, 1 to 200; 50 otherwise.', offset: 'Media to pass over.' },
    response: MediaList,
  },
  media: {
    method: 'GET',
    path: '/media/:id',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'The bytes of a medium of the caller; conditions and one byte range are honoured (RFC 9110).',
    rawResponse: 'The bytes, in the type of the medium.',
  },
  mediaInfo: {
    method: 'GET',
    path: '/media/:id/meta',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'What is known of a medium of the caller.',
    response: MediaInfo,
  },
  mediaDelete: {
    method: 'DELETE',
    path: '/media/:id',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'Removes a medium of the caller for good.',
    success: 204,
  },
  webhook: {
    method: 'POST',
    path: '/hooks/webhook',
    scope: 'none',
    family: 'api',
    rateLimited: true,
    signed: true,
    summary:
      'Takes a webhook of a fixed shape, always signed. It is stored before the answer; the turn or heartbeat that it causes comes later. The path begins with `webhooks.path`.',
    headers: signatureHeaders,
    failures: [401, 422],
    body: WebhookPayload,
    response: WebhookReceived,
  },
  hook: {
    method: 'POST',
    path: '/hooks/*path',
    scope: 'none',
    family: 'api',
    rateLimited: true,
    signed: true,
    summary:
      'Takes a webhook of any shape for the first mapping of the configuration that matches. It is stored before the answer; a repeat of a stored one is answered likewise and causes nothing. The path begins with `webhooks.path`.',
    headers: signatureHeaders,
    failures: [401],
    body: z.unknown().describe('Any JSON; the github preset takes forms as well.'),
    response: WebhookReceived,
  },
  metrics: {
    method: 'GET',
    path: '/metrics',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'Numbers for Prometheus.',
    rawResponse: 'The text format of Prometheus, version 0.0.4.',
  },
  asyncapi: {
    method: 'GET',
    path: '/asyncapi.json',
    scope: 'none',
    family: 'api',
    rateLimited: true,
    summary: 'The AsyncAPI document of the event streams and of the WebSocket.',
    response: document,
  },
  openapi: {
    method: 'GET',
    path: '/openapi.json',
    scope: 'none',
    family: 'api',
    rateLimited: true,
    summary: 'The OpenAPI document of the HTTP routes.',
    response: document,
  },
  openrpc: {
    method: 'GET',
    path: '/openrpc.json',
    scope: 'none',
    family: 'api',
    rateLimited: true,
    summary: 'The OpenRPC document of the JSON-RPC methods.',
    response: document,
  },
  rpc: {
    method: 'POST',
    path: '/rpc',
    scope: 'any',
    family: 'rpc',
    rateLimited: true,
    summary: 'JSON-RPC 2.0 over HTTP: one request, or a batch of at most 50.',
    body: z.union([RpcRequest, z.array(RpcRequest).min(1).max(50)]),
    response: z.union([RpcReply, z.array(RpcReply)]),
  },
  mcp: {
    method: 'POST',
    path: '/mcp',
    scope: 'mcp-client',
    family: 'rpc',
    rateLimited: true,
    summary:
      'The Model Context Protocol (streamable HTTP): the agents as tools, their workspaces as resources. Takes one message, or a batch of at most 50.',
    headers: {
      'Mcp-Session-Id': 'The session that `initialize` began; not used from protocol version 2026-07-28 on.',
      'MCP-Protocol-Version': 'The version that was agreed on.',
    },
    body: z.union([RpcRequest, z.array(RpcRequest).min(1).max(50)]),
    streamed: document,
    streamText: 'One JSON-RPC message per event: notifications of the call, then its response; comment lines keep the connection alive.',
  },
  mcpStream: {
    method: 'GET',
    path: '/mcp',
    scope: 'mcp-client',
    family: 'rpc',
    rateLimited: true,
    summary: 'What the server tells an MCP session unasked, as an event stream: that the list of tools changed. One for each session.',
    headers: { 'Mcp-Session-Id': 'The session that `initialize` began.' },
    streamed: document,
    streamText: 'One JSON-RPC notification per event; comment lines keep the connection alive.',
  },
  mcpEnd: {
    method: 'DELETE',
    path: '/mcp',
    scope: 'mcp-client',
    family: 'rpc',
    rateLimited: true,
    summary: 'Ends an MCP session; what still runs in it is aborted.',
    headers: { 'Mcp-Session-Id': 'The session that `initialize` began.' },
  },
  ws: {
    method: 'GET',
    path: '/ws',
    scope: 'socket',
    family: 'rpc',
    rateLimited: true,
    summary: 'JSON-RPC 2.0 over WebSocket.',
    query: { token: 'An access token, for clients that cannot set a header.' },
  },
} as const satisfies Record<string, Route>;

export type RouteName = keyof typeof routes;
