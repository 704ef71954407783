import * as z from 'zod';
import type { RouteScope } from '../scopes.ts';
import { Health } from './health.ts';
import { RpcReply, RpcRequest } from './rpc.ts';
import { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest } from './v1-chat.ts';
import { EmbeddingRequest, EmbeddingResponse } from './v1-embeddings.ts';
import { ModelList, ModelObject } from './v1-models.ts';

/** Which shape the errors of a route have: the `/v1` body, `{error, code, requestId}`, or a JSON-RPC reply. */
export type RouteFamily = 'v1' | 'api' | 'rpc';

/** One HTTP route, declared once: the router, the scope check, the rate limiter and the OpenAPI document read it from here. */
export interface Route {
  readonly method: 'GET' | 'POST';
  /** `:name` spans one segment, a trailing `*name` all that remain. */
  readonly path: string;
  readonly scope: RouteScope;
  readonly family: RouteFamily;
  /** False only for the two health routes (http-gateway.md §8). */
  readonly rateLimited: boolean;
  readonly summary: string;
  readonly body?: z.ZodType;
  readonly response?: z.ZodType;
  /** Shape of one data line when the answer is an event stream. */
  readonly streamed?: z.ZodType;
  readonly query?: Readonly<Record<string, string>>;
}

const document = z.looseObject({});

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
    body: ChatCompletionRequest,
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
    body: EmbeddingRequest,
    response: EmbeddingResponse,
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
