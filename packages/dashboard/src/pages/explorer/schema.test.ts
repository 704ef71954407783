import type { MethodName } from '@gatehouse/contract';
import { openRpcDocument } from '@gatehouse/contract/openrpc';
import { describe, expect, test } from 'vitest';
import { createLookup, hintOf, shapeOf } from '../../ui/schema/schema.ts';

const document = openRpcDocument({ version: '0.0.0' });
const lookup = createLookup(document.components.schemas);

function shapesOf(name: MethodName) {
  const method = document.methods.find((one) => one.name === name);
  return Object.fromEntries((method?.params ?? []).map((param) => [param.name, shapeOf(param.schema, lookup)]));
}

describe('the form of a method', () => {
  test('has a matching control for each parameter', () => {
    expect(shapesOf('session.list')).toMatchObject({
      agentId: { kind: 'text' },
      kind: { kind: 'choice', options: ['all', 'dm', 'group', 'sub-agent', 'v1'] },
      limit: { kind: 'number', min: 1, max: 200, whole: true },
    });
    expect(shapesOf('tokens.create')).toMatchObject({
      scopes: { kind: 'choices' },
      agents: { kind: 'lines' },
      expiresAt: { kind: 'number', max: undefined },
    });
    expect(shapesOf('agents.update')).toMatchObject({ dryRun: { kind: 'boolean' }, config: { kind: 'json' } });
  });

  test('expands objects into their fields', () => {
    const { config } = shapesOf('agents.create');
    if (config?.kind !== 'object') throw new Error('the configuration of an agent is an object');
    expect(config.fields.find(({ name }) => name === 'tools')).toBeDefined();
    expect(config.fields.every(({ required }) => !required)).toBe(true);
  });

  test('exists for every method of the contract', () => {
    for (const { name, params } of document.methods)
      for (const param of params) expect([name, param.name, shapeOf(param.schema, lookup).kind]).not.toContain(undefined);
  });

  test('shows bounds and defaults', () => {
    expect(hintOf({ type: 'integer', minimum: 1, maximum: 9, default: 3, description: 'How many.' }, lookup)).toBe('How many. 1 to 9. Default: 3.');
    expect(hintOf({ type: 'string' }, lookup)).toBeUndefined();
  });
});

test('stops at missing and cyclic references', () => {
  const circle = createLookup({ a: { $ref: '#/components/schemas/b' }, b: { $ref: '#/components/schemas/a' } });
  expect(shapeOf({ $ref: '#/components/schemas/a' }, circle)).toEqual({ kind: 'json' });
  expect(shapeOf({ $ref: '#/components/schemas/none' }, circle)).toEqual({ kind: 'json' });
});
