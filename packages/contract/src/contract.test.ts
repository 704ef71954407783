import { expect, test } from 'vitest';
import * as z from 'zod';
import { errorCatalogue } from './errors.ts';
import type { EventDeclaration } from './event.ts';
import { events } from './events.ts';
import { type Route, routes } from './http/routes.ts';
import type { Method } from './method.ts';
import { methodsByName } from './registry.ts';

const methods = Object.entries<Method>(methodsByName);

/** An undeclared key, which strict parsing must refuse. */
const unknownKey = { anUndeclaredKey: true };

test.each(methods)('%s describes itself, its callers and its version', (name, one) => {
  expect(name).toMatch(/^[a-z]+(\.[A-Za-z][A-Za-z0-9_]*)+$/);
  expect(one.summary).toMatch(/^[A-Z][^\n]+\.$/);
  expect(one.summary.length).toBeLessThanOrEqual(160);
  if (one.description !== undefined) expect(one.description).toMatch(/\.$/);
  expect(['rpc', 'admin']).toContain(one.scope);
  expect(['read', 'mutate', 'destructive']).toContain(one.risk);
  expect(one.since).toMatch(/^\d+\.\d+\.\d+$/);
});

test.each(methods)('%s refuses unknown parameters', (_name, one) => {
  const example = one.examples[0]?.params;
  const params = z.record(z.string(), z.unknown()).parse(example);
  const outcome = one.params.safeParse({ ...params, ...unknownKey });
  expect(outcome.success).toBe(false);
  expect(outcome.error?.issues.map((issue) => issue.code)).toEqual(['unrecognized_keys']);
});

test.each(methods)('%s has examples that parse and survive the wire', (_name, one) => {
  expect(one.examples.length).toBeGreaterThan(0);
  for (const example of one.examples) {
    const params = one.params.parse(example.params);
    expect(one.params.parse(overTheWire(params))).toEqual(params);
    const result = one.result.parse(example.result);
    expect(one.result.parse(overTheWire(result))).toEqual(result);
    expect(overTheWire(result)).toEqual(result);
  }
});

test.each(methods)('%s names each error once, and only errors of the catalogue', (_name, one) => {
  const errors = one.errors ?? [];
  expect(new Set(errors).size).toBe(errors.length);
  for (const code of errors) expect(errorCatalogue).toHaveProperty(code);
});

test.each(Object.entries<Route>(routes))('route %s has a summary and, when it takes a body, is a POST', (_name, route) => {
  expect(route.summary).toMatch(/^[A-Z][^\n]+\.$/);
  expect(route.path).toMatch(/^\/[A-Za-z0-9/_.:*-]*$/);
  expect(route.body !== undefined || route.rawBody !== undefined).toBe(route.method === 'POST');
});

test('no two routes share method and path', () => {
  const all = Object.values<Route>(routes).map((route) => `${route.method} ${route.path}`);
  expect(new Set(all).size).toBe(all.length);
});

test('only the health routes are exempt from the rate limiter', () => {
  const free = Object.values<Route>(routes).filter((route) => !route.rateLimited);
  expect(free.map((route) => route.path)).toEqual(['/health', '/api/health']);
});

test.each(Object.entries<EventDeclaration>(events))('event %s has a summary and a strict payload with a timestamp', (kind, one) => {
  // The specification names two with a dot.
  expect(kind).toMatch(/^[a-z][a-z_]*[:.][a-z_]+$/);
  expect(one.summary).toMatch(/^[A-Z][^\n]+\.$/);
  expect(one.payload).toBeInstanceOf(z.ZodObject);
  const refused = one.payload.safeParse(unknownKey).error?.issues ?? [];
  expect(refused.map((issue) => issue.code)).toContain('unrecognized_keys');
  expect(refused.map((issue) => issue.path.join('.'))).toContain('timestamp');
});

test('a content-free event carries no text of a conversation', () => {
  for (const one of Object.values<EventDeclaration>(events).filter(({ visibility }) => visibility === 'system')) {
    const shape = one.payload instanceof z.ZodObject ? Object.keys(one.payload.shape) : [];
    expect(shape.filter((key) => ['text', 'content', 'delta', 'message', 'sessionKey', 'conversationRef'].includes(key))).toEqual([]);
  }
});

test('errors have numbers and statuses of their class', () => {
  for (const entry of Object.values(errorCatalogue)) {
    expect(entry.rpc).toBeLessThanOrEqual(-32000);
    expect(entry.http).toBeGreaterThanOrEqual(400);
    expect(entry.text).toMatch(/\.$/);
  }
});

function overTheWire(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
