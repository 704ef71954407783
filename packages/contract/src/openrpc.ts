import { type ErrorCode, errorCatalogue } from './errors.ts';
import { createSchemaWriter, isJsonObject, type Json, type JsonObject, type SchemaUse } from './json-schema.ts';
import type { Method } from './method.ts';
import { methodsByName } from './registry.ts';

const refPrefix = '#/components/schemas/';

/** Errors that every call may have; a method lists its additional ones. */
const commonErrors = ['invalid_params', 'insufficient_scope', 'rate_limited', 'unavailable'] as const satisfies readonly ErrorCode[];

export type OpenRpcContentDescriptor = { name: string; description?: string; required?: boolean; schema: JsonObject };
export type OpenRpcMethod = {
  name: string;
  summary: string;
  description?: string;
  tags: { name: string }[];
  paramStructure: 'by-name';
  params: OpenRpcContentDescriptor[];
  result: OpenRpcContentDescriptor;
  errors: { $ref: string }[];
  examples: { name: string; params: { name: string; value: Json }[]; result: { name: string; value: Json } }[];
  'x-scope': string;
  'x-risk': string;
  'x-since': string;
};
export type OpenRpcDocument = {
  openrpc: string;
  info: { title: string; version: string; description: string; license: { name: string } };
  servers: { name: string; url: string; summary?: string }[];
  methods: OpenRpcMethod[];
  components: {
    schemas: Record<string, JsonObject>;
    errors: Record<string, { code: number; message: string; data: JsonObject }>;
  };
};

export interface OpenRpcOptions {
  readonly version: string;
  /** Base URL of the gateway, without a trailing slash; the default port on this machine otherwise. */
  readonly baseUrl?: string;
}

/**
 * The OpenRPC 1.3 document of the registry, returned by `rpc.discover` and `/openrpc.json` and kept in the reference.
 * Parameters are by name, one descriptor per top-level property; `x-scope` and `x-risk` carry the declared access.
 */
export function openRpcDocument({ version, baseUrl = 'http://127.0.0.1:4766' }: OpenRpcOptions): OpenRpcDocument {
  const declared = Object.entries<Method>(methodsByName).sort(([a], [b]) => (a < b ? -1 : 1));
  const writer = createSchemaWriter(
    declared.flatMap(([, one]): SchemaUse[] => [paramsOf(one), resultOf(one)]),
    { target: 'draft-7', refPrefix },
  );
  return {
    openrpc: '1.3.2',
    info: {
      title: 'Gatehouse',
      version,
      description:
        'JSON-RPC 2.0 over POST /rpc and over the WebSocket /ws, with a bearer token. Parameters are given by name; unknown ones are refused.',
      license: { name: 'MIT' },
    },
    servers: [
      { name: 'http', url: `${baseUrl}/rpc`, summary: 'One request or a batch of at most 50.' },
      { name: 'websocket', url: `${baseUrl.replace(/^http/, 'ws')}/ws` },
    ],
    methods: declared.map(([name, one]) => describeMethod(name, one, writer)),
    components: { schemas: writer.components(), errors: errorComponents() },
  };
}

type Writer = ReturnType<typeof createSchemaWriter>;

function paramsOf(one: Method): SchemaUse {
  return { schema: one.params, side: 'input' };
}

function resultOf(one: Method): SchemaUse {
  return { schema: one.result, side: 'output' };
}

function describeMethod(name: string, one: Method, writer: Writer): OpenRpcMethod {
  const params = descriptors(writer.schema(paramsOf(one)));
  return {
    name,
    summary: one.summary,
    ...(one.description === undefined ? {} : { description: one.description }),
    tags: [{ name: name.slice(0, name.lastIndexOf('.')) }],
    paramStructure: 'by-name',
    params,
    result: { name: 'result', schema: writer.schema(resultOf(one)) },
    errors: uniqueByNumber([...(one.errors ?? []), ...commonErrors]).map((code) => ({ $ref: `#/components/errors/${code}` })),
    examples: one.examples.map((example, index) => ({
      name: one.examples.length === 1 ? 'example' : `example ${index + 1}`,
      params: Object.entries(asJsonObject(example.params)).map(([key, value]) => ({ name: key, value })),
      // The stored example may omit defaults; a caller receives them.
      result: { name: 'result', value: asJson(one.result.parse(example.result)) },
    })),
    'x-scope': one.scope,
    'x-risk': one.risk,
    'x-since': one.since,
  };
}

/** Puts required parameters first, as OpenRPC requires; otherwise keeps the declared order. */
function descriptors(schema: JsonObject): OpenRpcContentDescriptor[] {
  const properties = isJsonObject(schema['properties']) ? schema['properties'] : {};
  const required = new Set(Array.isArray(schema['required']) ? schema['required'] : []);
  const all = Object.entries(properties).map(([name, property]) => {
    const body = isJsonObject(property) ? property : {};
    return {
      name,
      ...(typeof body['description'] === 'string' ? { description: body['description'] } : {}),
      required: required.has(name),
      schema: body,
    };
  });
  return [...all.filter((one) => one.required), ...all.filter((one) => !one.required)];
}

/** OpenRPC requires distinct error numbers per method; the first code of a number represents the others, which `data.code` distinguishes. */
function uniqueByNumber(codes: readonly ErrorCode[]): ErrorCode[] {
  const seen = new Map<number, ErrorCode>();
  for (const code of codes) if (!seen.has(errorCatalogue[code].rpc)) seen.set(errorCatalogue[code].rpc, code);
  return [...seen.values()].sort((a, b) => errorCatalogue[b].rpc - errorCatalogue[a].rpc);
}

function errorComponents(): OpenRpcDocument['components']['errors'] {
  return Object.fromEntries(Object.entries(errorCatalogue).map(([code, entry]) => [code, { code: entry.rpc, message: entry.text, data: { code } }]));
}

/** Fixes the type of example values, which are plain data already, and drops undefined keys. */
function asJson(value: unknown): Json {
  return JSON.parse(JSON.stringify(value));
}

function asJsonObject(value: unknown): JsonObject {
  const json = asJson(value);
  return isJsonObject(json) ? json : {};
}
