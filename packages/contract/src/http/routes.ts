import * as z from 'zod';
import type { JsonObject } from '../json-schema.ts';
import { once } from '../once.ts';
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
import { ImageRequest, ImageResponse, SpeechRequest, Transcription } from './v1-audio.ts';
import { EmbeddingRequest, EmbeddingResponse, ExtendedEmbeddingRequest } from './v1-embeddings.ts';
import { CountTokensRequest, MessageObject, MessagesRequest, MessageStreamEvent, TokenCount } from './v1-messages.ts';
import { ModelList, ModelObject } from './v1-models.ts';
import { ResponseStreamEvent } from './v1-responses-events.ts';
import { ResponseCompaction, ResponseCompactRequest, ResponseInputItems, ResponseTokens, ResponseTokensRequest } from './v1-responses-more.ts';
import { ResponseDeleted, ResponseObject, ResponseRequest } from './v1-responses.ts';

/** Error format of a route: the `/v1` body, that of `/v1/messages`, `{error, code, requestId}`, or a JSON-RPC reply. */
export type RouteFamily = 'v1' | 'messages' | 'api' | 'rpc';

/** One HTTP route, declared once: the router, the scope check, the rate limiter and the OpenAPI document read it from here. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** `:name` matches one segment, a trailing `*name` all that remain. */
  readonly path: string;
  readonly scope: RouteScope;
  readonly family: RouteFamily;
  /** False only for the two health routes (http-gateway.md §8). */
  readonly rateLimited: boolean;
  /** Callers authenticate by a signature of the body; an `Authorization` header is ignored. */
  readonly signed?: true;
  /** `x-api-key` is accepted too, as the same bearer token. */
  readonly apiKey?: true;
  readonly summary: string;
  /** Schemas are functions, built when they are first used: see `once`. */
  readonly body?: () => z.ZodType;
  /** A JSON body that the route accepts. */
  readonly example?: JsonObject;
  readonly response?: () => z.ZodType;
  /** Types of a body that is not JSON, each with a description; none when there is no body. */
  readonly rawBody?: Readonly<Record<string, string>>;
  /** Failure statuses in addition to the derived ones. */
  readonly failures?: readonly number[];
  /** Description of an answer made of bytes of any type. */
  readonly rawResponse?: string;
  /** Status of success; 200 otherwise. */
  readonly success?: 201 | 204;
  /** Shape of one data line when the answer is an event stream. */
  readonly streamed?: () => z.ZodType;
  /** Description of an event stream with its own event formats. */
  readonly streamText?: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Request headers that the route reads in addition to the common ones. */
  readonly headers?: Readonly<Record<string, string>>;
}

const document = z.looseObject({});
const signatureHeaders = {
  'X-Webhook-Signature':
    'HMAC of the raw body under the shared secret: hex in either case, bare or after `sha256=`. The configuration may rename the header.',
  'X-Webhook-Timestamp': 'When it was sent, in Unix seconds; part of the signed text if configured so.',
};
const messagesHeaders = {
  'x-api-key': 'The token, instead of `Authorization: Bearer`. With a different `Authorization`: 401.',
  'anthropic-version': 'Accepted with any value.',
  'anthropic-beta': 'Accepted; not passed on to providers.',
};
const idempotencyKey =
  '1 to 255 visible ASCII characters. Within 24 hours the same key with the same body attaches to the running turn or returns its first outcome, unless that was 429 or 503; with another body it is a conflict.';

/** The accepted body depends on the setting of the gateway or the token. */
const compatNote = 'The first with compat.fields: strict (the default), the second with compat.fields: extended, of the gateway or of the token.';

/** Every route of the gateway (http-gateway.md §4). Anything else is a 404. */
export const routes = {
  health: {
    method: 'GET',
    path: '/health',
    scope: 'none',
    family: 'api',
    rateLimited: false,
    summary: 'Liveness and, with `?ready`, readiness.',
    response: Health,
    query: { ready: 'When given: 503 until the daemon is ready, while it drains, and while it has no lease of a shared database.' },
  },
  apiHealth: {
    method: 'GET',
    path: '/api/health',
    scope: 'none',
    family: 'api',
    rateLimited: false,
    summary: 'The same as `/health`.',
    response: Health,
    query: { ready: 'When given: 503 until the daemon is ready, while it drains, and while it has no lease of a shared database.' },
  },
  chatCompletions: {
    method: 'POST',
    path: '/v1/chat/completions',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: 'Runs one agent turn over the given messages, in a separate conversation that is not kept.',
    body: once(() => z.union([ChatCompletionRequest(), ExtendedChatCompletionRequest()]).describe(compatNote)),
    example: { model: 'agent/default', messages: [{ role: 'user', content: 'What can you do?' }] },
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
    summary: 'Converts texts to vectors.',
    body: once(() => z.union([EmbeddingRequest(), ExtendedEmbeddingRequest()]).describe(compatNote)),
    example: { model: 'openai/text-embedding-3-small', input: ['The tide is out.', 'The moon is full.'] },
    response: EmbeddingResponse,
  },
  transcriptions: {
    method: 'POST',
    path: '/v1/audio/transcriptions',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: "Converts speech to text, in the shape of OpenAI's API; 404 while `media.transcription.providers` is empty.",
    rawBody: { 'multipart/form-data': 'The part `file` with the recording, and the fields `model`, `language`, `response_format`.' },
    response: Transcription,
    failures: [404],
  },
  speech: {
    method: 'POST',
    path: '/v1/audio/speech',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: "Converts text to speech, in the shape of OpenAI's API; 404 while `tts.providers` is empty.",
    body: SpeechRequest,
    example: { model: 'gpt-4o-mini-tts', input: 'The tide is out.', voice: 'alloy' },
    rawResponse: 'The sound; its type is that of its bytes.',
    failures: [404],
  },
  images: {
    method: 'POST',
    path: '/v1/images/generations',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: "Generates an image, in the shape of OpenAI's API; 404 while `imageGen.providers` is empty.",
    body: ImageRequest,
    example: { model: 'gpt-image-1', prompt: 'A lighthouse at low tide' },
    response: ImageResponse,
    failures: [404],
  },
  messages: {
    method: 'POST',
    path: '/v1/messages',
    scope: 'v1',
    family: 'messages',
    rateLimited: true,
    apiKey: true,
    summary: "Runs one agent turn over the given messages, in the shape of Anthropic's Messages API; nothing is kept.",
    headers: messagesHeaders,
    body: MessagesRequest,
    example: { model: 'agent/default', max_tokens: 500, messages: [{ role: 'user', content: 'What can you do?' }] },
    response: MessageObject,
    streamed: MessageStreamEvent,
    streamText:
      'With `stream: true`: events as described by `x-event`; `ping` events keep the connection alive. A failure after the first byte is the event `error`, the last one.',
  },
  countTokens: {
    method: 'POST',
    path: '/v1/messages/count_tokens',
    scope: 'v1',
    family: 'messages',
    rateLimited: true,
    apiKey: true,
    summary: 'Estimates the input tokens of a message; no model is called.',
    headers: messagesHeaders,
    body: CountTokensRequest,
    example: { model: 'agent/default', messages: [{ role: 'user', content: 'What can you do?' }] },
    response: TokenCount,
  },
  createResponse: {
    method: 'POST',
    path: '/v1/responses',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: 'Runs one agent turn in the shape of Open Responses, over the given input and its predecessors.',
    body: ResponseRequest,
    example: { model: 'agent/default', input: 'What can you do?' },
    response: ResponseObject,
    streamed: ResponseStreamEvent,
    streamText:
      'With `stream: true`: events as described by `x-event`, then `data: [DONE]`; comment lines keep the connection alive. A failure after the first byte is the event `response.failed`.',
  },
  responsesSocket: {
    method: 'GET',
    path: '/v1/responses',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary:
      'The WebSocket form: each text frame is a response request with `type: "response.create"`; events arrive one per frame, and failures before the first of them as `{type: "error", status, error}`.',
    failures: [426],
  },
  compactResponse: {
    method: 'POST',
    path: '/v1/responses/compact',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: 'Condenses a conversation into an item that replaces it as the input of a new one; a model writes the summary.',
    body: ResponseCompactRequest,
    example: { model: 'agent/default', input: 'What can you do?' },
    response: ResponseCompaction,
  },
  responseTokens: {
    method: 'POST',
    path: '/v1/responses/input_tokens',
    scope: 'v1',
    family: 'v1',
    rateLimited: true,
    summary: 'Estimates the input tokens of a response; no model is called.',
    body: ResponseTokensRequest,
    example: { model: 'agent/default', input: 'What can you do?' },
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
      after: 'Id of an item: returns those after it.',
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
    summary: 'Deletes a stored response; its successors can no longer be continued.',
    response: ResponseDeleted,
  },
  apiChat: {
    method: 'POST',
    path: '/api/chat',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'Runs one agent turn in a conversation and returns the whole answer.',
    headers: { 'Idempotency-Key': idempotencyKey },
    body: ApiChatRequest,
    example: { message: 'What can you do?' },
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
        'With a key: the id of the last `token` event that the client has; the stream resumes after it, or after a `gap` event where it cannot.',
    },
    body: ApiChatRequest,
    example: { message: 'What can you do?' },
    streamed: once(() => z.union([ApiChatToken(), ApiChatGap(), ApiChatResult(), HttpError()])),
    streamText:
      'Events: `token` with `{delta}` (and an `id` under an Idempotency-Key), `gap` with `{resumesAt}`, and last `done` with the answer of `/api/chat` or `error` with the error body; comment lines keep the connection alive.',
  },
  apiChatHistory: {
    method: 'GET',
    path: '/api/chat/history',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'Returns the messages of a conversation, oldest first; of that of the token when none is named.',
    query: {
      conversationRef: 'The conversation.',
      sessionKey: 'The conversation by its printed key.',
      channelId: 'The conversation of the token on this channel.',
      agentId: 'The agent of the conversation, the default agent otherwise.',
      limit: 'Messages, 1 to 200; 50 otherwise.',
      offset: 'Messages to skip.',
    },
    response: ApiChatHistory,
  },
  events: {
    method: 'GET',
    path: '/api/events',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'Streams the events that the token may see. A token in the query is refused.',
    query: { kinds: 'Only these kinds, separated by commas.' },
    headers: { 'Last-Event-ID': 'The id of the last event that the client has; later events are sent first. 0 requests all that are kept.' },
    streamText:
      'First `retry: 3000` and the id to resume after. Then one event per kind of docs/reference/events.md, with `id`, `event` and its payload as `data`; transient kinds have no id. `gap` (shape `EventGap`) reports missed events that can no longer be sent, `ping` comes every 15 seconds, `bye` before a stop, `error` when the token ends.',
  },
  activity: {
    method: 'GET',
    path: '/api/activity',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'The newest events that the token may see, oldest first. With a filter, those that are stored: the last second may be missing.',
    query: {
      limit: 'At most so many, 1 to 100; 50 otherwise.',
      before: 'Only events before this id, for the next page.',
      since: 'First millisecond.',
      until: 'The first millisecond that no longer counts.',
      kind: 'Only this kind.',
    },
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
    summary: 'The channels on which messages are received and sent.',
    response: ApiChannels,
  },
  apiMemorySearch: {
    method: 'GET',
    path: '/api/memory/search',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'Searches memories of an agent by terms and by meaning, best first.',
    query: {
      q: 'Search text, 1 to 32768 characters.',
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
    summary: 'The dashboard, a page for the browser; it is also served for other paths that a browser requests as a page.',
  },
  dashboardAsset: {
    method: 'GET',
    path: '/assets/*file',
    scope: 'none',
    family: 'api',
    rateLimited: true,
    summary: 'A file of the dashboard; its name changes with its content.',
  },
  dashboardFrame: {
    method: 'GET',
    path: '/frame',
    scope: 'none',
    family: 'api',
    rateLimited: true,
    summary: 'An empty page with its own origin and without network, in which the dashboard shows pages and diagrams that a model wrote.',
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
    query: { limit: 'Media, 1 to 200; 50 otherwise.', offset: 'Media to skip.' },
    response: MediaList,
  },
  media: {
    method: 'GET',
    path: '/media/:id',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'The bytes of a media file of the caller; conditions and one byte range are honoured (RFC 9110).',
    rawResponse: 'The bytes, in the type of the media file.',
  },
  mediaInfo: {
    method: 'GET',
    path: '/media/:id/meta',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'The facts of a media file of the caller.',
    response: MediaInfo,
  },
  mediaDelete: {
    method: 'DELETE',
    path: '/media/:id',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'Deletes a media file of the caller for good.',
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
      'Accepts a webhook with a fixed format, always signed. It is stored before the answer; the turn or heartbeat that it triggers comes later. The path begins with `webhooks.path`.',
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
      'Accepts a webhook with any format for the first mapping of the configuration that matches. It is stored before the answer; a repeat of a stored one gets the same answer and triggers nothing. The path begins with `webhooks.path`.',
    headers: signatureHeaders,
    failures: [401],
    body: once(() => z.unknown().describe('Any JSON; the github preset accepts forms as well.')),
    response: WebhookReceived,
  },
  oauthCallback: {
    method: 'GET',
    path: '/oauth/callback',
    scope: 'none',
    family: 'api',
    rateLimited: true,
    summary:
      'Where a browser returns after a person authorized an MCP server (`mcp.authorize`). Its state is the only authority: unguessable, valid once and for ten minutes.',
    query: {
      state: 'Names the authorization that was begun.',
      code: 'The code of the authorization server.',
      iss: 'The issuer (RFC 9207).',
      error: 'Why the authorization server refused.',
    },
    failures: [400, 502],
    rawResponse: 'A page that says what happened.',
  },
  metrics: {
    method: 'GET',
    path: '/metrics',
    scope: 'rpc',
    family: 'api',
    rateLimited: true,
    summary: 'Metrics for Prometheus.',
    rawResponse: 'The text format of Prometheus, version 0.0.4.',
  },
  asyncapi: {
    method: 'GET',
    path: '/asyncapi.json',
    scope: 'none',
    family: 'api',
    rateLimited: true,
    summary: 'The AsyncAPI document of the event streams and of the WebSocket.',
    response: () => document,
  },
  openapi: {
    method: 'GET',
    path: '/openapi.json',
    scope: 'none',
    family: 'api',
    rateLimited: true,
    summary: 'The OpenAPI document of the HTTP routes.',
    response: () => document,
  },
  openrpc: {
    method: 'GET',
    path: '/openrpc.json',
    scope: 'none',
    family: 'api',
    rateLimited: true,
    summary: 'The OpenRPC document of the JSON-RPC methods.',
    response: () => document,
  },
  rpc: {
    method: 'POST',
    path: '/rpc',
    scope: 'any',
    family: 'rpc',
    rateLimited: true,
    summary: 'JSON-RPC 2.0 over HTTP: one request, or a batch of at most 50.',
    body: once(() => z.union([RpcRequest(), z.array(RpcRequest()).min(1).max(50)])),
    example: { jsonrpc: '2.0', id: 1, method: 'system.ping', params: {} },
    response: once(() => z.union([RpcReply(), z.array(RpcReply())])),
  },
  mcp: {
    method: 'POST',
    path: '/mcp',
    scope: 'mcp-client',
    family: 'rpc',
    rateLimited: true,
    summary:
      'The Model Context Protocol (streamable HTTP): the agents as tools, their workspaces as resources. Accepts one message, or a batch of at most 50.',
    headers: {
      'Mcp-Session-Id': 'The session that `initialize` began; not used from protocol version 2026-07-28 on.',
      'MCP-Protocol-Version': 'The negotiated version.',
    },
    body: once(() => z.union([RpcRequest(), z.array(RpcRequest()).min(1).max(50)])),
    example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    streamed: () => document,
    streamText: 'One JSON-RPC message per event: notifications of the call, then its response; comment lines keep the connection alive.',
  },
  mcpStream: {
    method: 'GET',
    path: '/mcp',
    scope: 'mcp-client',
    family: 'rpc',
    rateLimited: true,
    summary: 'Notifications of the server to an MCP session, as an event stream: that the list of tools changed. One for each session.',
    headers: { 'Mcp-Session-Id': 'The session that `initialize` began.' },
    streamed: () => document,
    streamText: 'One JSON-RPC notification per event; comment lines keep the connection alive.',
  },
  mcpEnd: {
    method: 'DELETE',
    path: '/mcp',
    scope: 'mcp-client',
    family: 'rpc',
    rateLimited: true,
    summary: 'Ends an MCP session; calls still running in it are aborted.',
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
