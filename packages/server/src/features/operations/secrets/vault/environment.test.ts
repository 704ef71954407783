import { expect, test } from 'vitest';
import { vendors } from '../../../../llm/vendors.ts';
import { layeredEnvironment } from './environment.ts';

const environment = layeredEnvironment({ OPENAI_API_KEY: 'of the environment', GROQ_API_KEY: '' }, (name) => `stored ${name}`);

test('the environment wins, an empty variable counts as none, and only names of secrets are looked up in the store', () => {
  expect(environment['OPENAI_API_KEY']).toBe('of the environment');
  expect(environment['GROQ_API_KEY']).toBe('stored GROQ_API_KEY');
  expect(environment['PATH']).toBeUndefined();
  expect({ ...environment }).toEqual({ OPENAI_API_KEY: 'of the environment', GROQ_API_KEY: 'stored GROQ_API_KEY' });
});

test('the keys of all model vendors can be stored, and their addresses cannot', () => {
  const keys = Object.values(vendors).flatMap(({ keyEnv }) => keyEnv);
  expect(keys.length).toBeGreaterThan(10);
  expect(keys.filter((name) => environment[name] === undefined)).toEqual([]);
  const addresses = Object.values(vendors).flatMap(({ baseUrlEnv }) => baseUrlEnv ?? []);
  expect(addresses.length).toBeGreaterThan(0);
  expect(addresses.filter((name) => environment[name] !== undefined)).toEqual([]);
});
