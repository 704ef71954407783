import { once } from './once.ts';
import { errorCatalogue } from './errors.ts';
import { HttpError } from './http/health.ts';
import { type Route, type RouteFamily, routes } from './http/routes.ts';
import { RpcReply } from './http/rpc.ts';
import { V1Error } from './http/v1-error.ts';
import { MessagesError } from './http/v1-messages.ts';
import { createSchemaWriter, type Json, type JsonObject, type SchemaUse } from './json-schema.ts';

export type OpenApiDocument = {
  openapi: string;
  info: { title: string; version: string; description: string; license: { name: string; identifier: string } };
  servers: { url: string }[];
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, JsonObject>>;
  components: { schemas: Record<string, JsonObject>; securitySchemes: JsonObject };
};

export interface OpenApiOptions {
  readonly version: string;
  readonly baseUrl?: string;
}

const errorBodies = once((): Record<RouteFamily, SchemaUse> => ({
  v1: { schema: V1Error(), side: 'output' },
  messages: { schema: MessagesError(), side: 'output' },
  api: { schema: HttpError(), side: 'output' },
  rpc: { schema: RpcReply(), side: 'output' },
}));

const families: Record<RouteFamily, string> = {
  v1: 'Chat-shaped routes for the usual client libraries; errors as `{error: {message, type, param, code}}`.',
  messages: "The shape of Anthropic's Messages API; errors as `{type: 'error', error: {type, message, param, code}, request_id}`.",
  api: 'Health, documents and the REST routes; errors as `{error, code, requestId}`.',
  rpc: 'JSON-RPC 2.0; errors as JSON-RPC replies.',
};

/** The OpenAPI 3.1 document of the route table, served as `/openapi.json` and kept in the reference. */
export function openApiDocument({ version, baseUrl = 'http://127.0.0.1:4766' }: OpenApiOptions): OpenApiDocument {
  const all = Object.entries<Route>(routes);
  const writer = createSchemaWriter([...all.flatMap(([, route]) => usesOf(route)), ...Object.values(errorBodies())], {
    target: 'draft-2020-12',
    refPrefix: '#/components/schemas/',
  });
  const paths: Record<string, Record<string, JsonObject>> = {};
  for (const [name, route] of all) {
    const path = openApiPath(route.path);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describeRoute(name, route, writer) };
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Gatehouse',
      version,
      description: 'The HTTP routes of the gateway. Every reply carries `x-request-id`.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: baseUrl }],
    tags: Object.entries(families).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: writer.components(),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An access token of the gateway.' },
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'The same token, for clients of the Messages API.' },
      },
    },
  };
}

/** Returns the failure statuses of a route, in order. */
export function errorStatuses(route: Route): number[] {
  const all = [
    ...(route.failures ?? []),
    ...(hasBody(route) || parsesQuery(route) ? [400] : []),
    ...(route.scope === 'none' ? [] : [401, 403]),
    ...(route.path.includes(':') || route.path.includes('*') || (route.family !== 'rpc' && route.body !== undefined) ? [404] : []),
    ...(route.headers?.['Idempotency-Key'] === undefined ? [] : [409]),
    ...(hasBody(route) ? [413, 415] : []),
    ...(route.rateLimited ? [429] : []),
    500,
    ...(route.rateLimited ? [503] : []),
  ];
  return [...new Set(all)].sort((a, b) => a - b);
}

/** Open routes accept any query: probes and browsers add to it. */
function parsesQuery(route: Route): boolean {
  return route.query !== undefined && route.scope !== 'none' && route.scope !== 'socket';
}

function hasBody(route: Route): boolean {
  return route.body !== undefined || Object.keys(route.rawBody ?? {}).length > 0;
}

type Writer = ReturnType<typeof createSchemaWriter>;

function usesOf(route: Route): SchemaUse[] {
  return [
    ...(route.body === undefined ? [] : [{ schema: route.body(), side: 'input' as const }]),
    ...[route.response?.(), route.streamed?.()].flatMap((schema) => (schema === undefined ? [] : [{ schema, side: 'output' as const }])),
  ];
}

/** `/v1/models/*id` → `/v1/models/{id}`. */
function openApiPath(path: string): string {
  return path.replaceAll(/[:*]([A-Za-z]+)/g, '{$1}');
}

function describeRoute(name: string, route: Route, writer: Writer): JsonObject {
  const parameters = [...pathParameters(route), ...namedParameters('query', route.query), ...namedParameters('header', route.headers)];
  return {
    operationId: name,
    summary: route.summary,
    tags: [route.family],
    security: route.scope === 'none' ? [] : [{ bearer: [] }, ...(route.apiKey === true ? [{ apiKey: [] }] : [])],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...requestBody(route, writer),
    responses: { ...success(name, route, writer), ...failures(route, writer) },
    'x-scope': route.scope,
    'x-rate-limited': route.rateLimited,
  };
}

function requestBody(route: Route, writer: Writer): JsonObject {
  if (route.body !== undefined) {
    const schema = writer.schema({ schema: route.body(), side: 'input' });
    const example = route.example === undefined ? {} : { example: route.example };
    return { requestBody: { required: true, content: { 'application/json': { schema, ...example } } } };
  }
  if (route.rawBody === undefined || !hasBody(route)) return {};
  const content = Object.entries(route.rawBody).map(([type, description]) => {
    const bytes = { type: 'string', format: 'binary', description };
    return [type, { schema: type === 'multipart/form-data' ? { type: 'object', properties: { file: bytes }, required: ['file'] } : bytes }] as const;
  });
  return { requestBody: { required: true, content: Object.fromEntries(content) } };
}

function json(schema: JsonObject): JsonObject {
  return { 'application/json': { schema } };
}

function pathParameters(route: Route): JsonObject[] {
  return [...route.path.matchAll(/([:*])([A-Za-z]+)/g)].map(([, kind, name]) => ({
    name: name ?? '',
    in: 'path',
    required: true,
    schema: { type: 'string' },
    ...(kind === '*' ? { description: 'All that remains of the path; slashes may be given as they are or percent-encoded.' } : {}),
  }));
}

function namedParameters(place: 'query' | 'header', parameters: Route['query']): JsonObject[] {
  return Object.entries(parameters ?? {}).map(([name, description]) => ({
    name,
    in: place,
    required: false,
    description,
    schema: { type: 'string' },
  }));
}

function success(name: string, route: Route, writer: Writer): JsonObject {
  if (name === 'responsesSocket') return { '101': { description: 'The connection is a WebSocket now.' } };
  if (name === 'ws') return { '101': { description: 'The connection is a WebSocket now; each text frame is a JSON-RPC message.' } };
  const content: Record<string, Json> = route.response === undefined ? {} : { ...json(writer.schema({ schema: route.response(), side: 'output' })) };
  if (route.streamed !== undefined) {
    content['text/event-stream'] = {
      schema: {
        type: 'string',
        description:
          route.streamText ??
          'With `stream: true`: one `data:` line per chunk in the shape of `x-event`, ended by `data: [DONE]`; comment lines keep the connection alive. A failure after the first byte is one data line with the error body, then `[DONE]`.',
      },
      'x-event': writer.schema({ schema: route.streamed(), side: 'output' }),
    };
  }
  if (route.streamText !== undefined && route.streamed === undefined)
    content['text/event-stream'] = { schema: { type: 'string', description: route.streamText } };
  if (route.rawResponse !== undefined) content['*/*'] = { schema: { type: 'string', format: 'binary', description: route.rawResponse } };
  return {
    [String(route.success ?? 200)]: {
      description: 'Success.',
      headers: { 'x-request-id': { description: 'Id of the request, as in the log.', schema: { type: 'string' } } },
      content,
    },
    ...(route.rawResponse === undefined
      ? {}
      : {
          '206': { description: 'The part requested by `Range`.', content },
          '304': { description: 'The client already has it: see `If-None-Match` and `If-Modified-Since`.' },
        }),
    ...(name === 'rpc' ? { '204': { description: 'The body held notifications only.' } } : {}),
    ...(route.query?.['ready'] === undefined ? {} : { '503': { description: 'With `?ready`: not ready yet, or draining.', content } }),
  };
}

const statusTexts: Record<number, string> = {
  400: 'The body is not valid JSON, or a field of it or of the query is missing, unknown or has a wrong value.',
  401: errorCatalogue.unauthenticated.text,
  403: errorCatalogue.insufficient_scope.text,
  404: errorCatalogue.not_found.text,
  409: 'The Idempotency-Key was used with another body, or the outcome of its turn is unknown.',
  413: errorCatalogue.payload_too_large.text,
  415: errorCatalogue.unsupported_media_type.text,
  426: 'The request is not a WebSocket handshake.',
  429: 'Too many requests; `Retry-After` says in how many seconds to try again.',
  500: errorCatalogue.internal.text,
  503: errorCatalogue.unavailable.text,
};

function failures(route: Route, writer: Writer): JsonObject {
  const content = json(writer.schema(errorBodies()[route.family]));
  const retryAfter = { headers: { 'Retry-After': { description: 'Seconds.', schema: { type: 'integer' } } } };
  return Object.fromEntries(
    errorStatuses(route).map((status) => [
      String(status),
      { description: statusTexts[status] ?? 'Failure.', ...(status === 429 ? retryAfter : {}), content },
    ]),
  );
}
