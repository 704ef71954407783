import { expect, test } from 'vitest';
import { type Route, routes } from './http/routes.ts';
import { isJsonObject, type Json, type JsonObject } from './json-schema.ts';
import { openApiDocument } from './openapi.ts';

const document: Json = JSON.parse(JSON.stringify(openApiDocument({ version: '1.2.3' })));
const operations = Object.entries(paths()).flatMap(([path, item]) =>
  Object.entries(asObject(item)).map(([method, operation]) => ({ path, method, operation: asObject(operation) })),
);

test('is an OpenAPI 3.1 document with the bearer scheme', () => {
  expect(document).toMatchObject({
    openapi: expect.stringMatching(/^3\.1\.\d+$/),
    info: { title: 'Gatehouse', version: '1.2.3' },
    components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
  });
});

test('has one operation for each route, each with a unique id', () => {
  expect(operations.map(({ operation }) => operation['operationId']).sort()).toEqual(Object.keys(routes).sort());
});

test.each(operations)('$method $path declares its path parameters and describes every response', ({ path, operation }) => {
  const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1]);
  const parameters = Array.isArray(operation['parameters']) ? operation['parameters'].filter(isJsonObject) : [];
  expect(parameters.filter((one) => one['in'] === 'path').map((one) => one['name'])).toEqual(inPath);
  for (const one of parameters.filter((parameter) => parameter['in'] === 'path')) expect(one['required']).toBe(true);
  const responses = Object.entries(asObject(operation['responses']));
  expect(responses.length).toBeGreaterThan(0);
  for (const [status, response] of responses) {
    expect(status).toMatch(/^[1-5]\d\d$/);
    expect(asObject(response)['description']).toMatch(/\S/);
  }
});

test.each(Object.entries<Route>(routes))('route %s requires a token exactly when its scope does', (name, route) => {
  const operation = operations.find((one) => one.operation['operationId'] === name)?.operation ?? {};
  expect(operation['security']).toEqual(route.scope === 'none' ? [] : [{ bearer: [] }, ...(route.apiKey === true ? [{ apiKey: [] }] : [])]);
  const statuses = Object.keys(asObject(operation['responses']));
  expect(statuses.includes('401')).toBe(route.scope !== 'none' || route.signed === true);
  expect(statuses.includes('429')).toBe(route.rateLimited);
});

test.each(Object.entries<Route>(routes).filter(([, { body, signed }]) => body !== undefined && signed === undefined))(
  'route %s has an example that it accepts, in the document too',
  (name, { body, example }) => {
    expect(body?.().safeParse(example).error).toBeUndefined();
    const operation = operations.find((one) => one.operation['operationId'] === name)?.operation ?? {};
    expect(operation['requestBody']).toMatchObject({ content: { 'application/json': { example } } });
  },
);

test.each([
  ['chatCompletions', 'V1Error'],
  ['openapi', 'HttpError'],
  ['rpc', 'RpcReply'],
])('failures of %s have the body of their family', (name, shape) => {
  const operation = operations.find((one) => one.operation['operationId'] === name)?.operation ?? {};
  expect(asObject(operation['responses'])['429']).toMatchObject({
    headers: { 'Retry-After': {} },
    content: { 'application/json': { schema: { $ref: `#/components/schemas/${shape}` } } },
  });
});

test('a streamed answer names the format of its data lines', () => {
  const operation = operations.find((one) => one.operation['operationId'] === 'chatCompletions')?.operation ?? {};
  expect(asObject(operation['responses'])['200']).toMatchObject({
    content: {
      'application/json': { schema: { $ref: '#/components/schemas/ChatCompletion' } },
      'text/event-stream': { 'x-event': { $ref: '#/components/schemas/ChatCompletionChunk' } },
    },
  });
});

test('every reference resolves', () => {
  const references = referencesIn(document);
  expect(references.length).toBeGreaterThan(20);
  for (const reference of references) expect(resolve(reference), reference).toBeDefined();
});

function paths(): JsonObject {
  return asObject(asObject(document)['paths']);
}

function asObject(value: Json | undefined): JsonObject {
  if (!isJsonObject(value)) throw new Error(`expected an object, got ${JSON.stringify(value)}`);
  return value;
}

function referencesIn(value: Json): string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => (key === '$ref' && typeof inner === 'string' ? [inner] : referencesIn(inner)));
}

function resolve(reference: string): Json | undefined {
  let found: Json | undefined = document;
  for (const part of reference.replace('#/', '').split('/')) found = isJsonObject(found) ? found[part] : undefined;
  return found;
}
