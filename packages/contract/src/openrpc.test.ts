import { expect, test } from 'vitest';
import { isJsonObject, type Json } from './json-schema.ts';
import type { Method } from './method.ts';
import { type OpenRpcDocument, openRpcDocument } from './openrpc.ts';
import { contract, methodsByName, type ResultInput } from './registry.ts';

const document = openRpcDocument({ version: '1.2.3', baseUrl: 'http://127.0.0.1:9' });

test('has the head that OpenRPC 1.3 requires', () => {
  expect(document.openrpc).toMatch(/^1\.3\.\d+$/);
  expect(document.info).toMatchObject({ title: 'Gatehouse', version: '1.2.3' });
  expect(document.servers.map((server) => server.url)).toEqual(['http://127.0.0.1:9/rpc', 'ws://127.0.0.1:9/ws']);
});

test('has every method once, sorted, with its access', () => {
  const names = document.methods.map((one) => one.name);
  expect(names).toEqual(Object.keys(contract).sort());
  for (const one of document.methods) {
    const declared: Method | undefined = Object.entries<Method>(methodsByName).find(([name]) => name === one.name)?.[1];
    expect(one['x-scope']).toBe(declared?.scope);
    expect(one['x-risk']).toBe(declared?.risk);
  }
});

test.each(document.methods)('$name has content descriptors by name, required ones first', (one) => {
  expect(one.paramStructure).toBe('by-name');
  for (const descriptor of [...one.params, one.result]) {
    expect(descriptor.name).not.toBe('');
    expect(isJsonObject(descriptor.schema)).toBe(true);
  }
  const names = one.params.map((param) => param.name);
  expect(new Set(names).size).toBe(names.length);
  const required = one.params.map((param) => param.required);
  expect(required).toEqual([...required].sort((a, b) => Number(b) - Number(a)));
});

test.each(document.methods)('$name has errors with different numbers', (one) => {
  const numbers = one.errors.map(({ $ref }) => document.components.errors[$ref.replace('#/components/errors/', '')]?.code);
  expect(numbers).not.toContain(undefined);
  expect(new Set(numbers).size).toBe(numbers.length);
});

test.each(document.methods)('$name has example pairings that use its parameters only', (one) => {
  expect(one.examples.length).toBeGreaterThan(0);
  const known = one.params.map((param) => param.name);
  const required = one.params.filter((param) => param.required).map((param) => param.name);
  for (const example of one.examples) {
    const given = example.params.map((param) => param.name);
    expect(given.filter((name) => !known.includes(name))).toEqual([]);
    expect(required.filter((name) => !given.includes(name))).toEqual([]);
    expect(example.result).toHaveProperty('value');
  }
});

test('every reference resolves', () => {
  const whole = plain(document);
  const references = referencesIn(whole);
  expect(references.length).toBeGreaterThan(50);
  for (const reference of references) expect(resolve(whole, reference), reference).toBeDefined();
});

test('a shape with defaults has one component for callers and one for answers', () => {
  expect(document.components.schemas['AgentConfigInput']?.['required']).toBeUndefined();
  expect(document.components.schemas['AgentConfig']?.['required']).toContain('maxSteps');
});

test('matches the result of rpc.discover', () => {
  const result: ResultInput<'rpc.discover'> = document;
  expect(contract['rpc.discover'].result.parse(result)).toEqual(document);
});

function plain(value: OpenRpcDocument): Json {
  return JSON.parse(JSON.stringify(value));
}

function referencesIn(value: Json): string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => (key === '$ref' && typeof inner === 'string' ? [inner] : referencesIn(inner)));
}

function resolve(root: Json, reference: string): Json | undefined {
  let found: Json | undefined = root;
  for (const part of reference.replace('#/', '').split('/')) found = isJsonObject(found) ? found[part] : undefined;
  return found;
}
