import * as z from 'zod';
import { expect, it } from 'vitest';
import type { Tool } from './tool.ts';
import { createToolSet } from './tool-set.ts';

const tool = (name: string, description = name): Tool => ({
  name,
  description,
  args: z.strictObject({}),
  risk: 'read',
  effect: 'pure',
  timeoutMs: 1000,
  run: async () => ({ content: '' }),
});

it('is the same list until a source changes, and keeps unchanged tools', () => {
  let served: readonly Tool[] = [tool('b')];
  const watched: string[] = [];
  const set = createToolSet([tool('a')], [() => served], (one) => {
    watched.push(one.name);
    return { ...one };
  });
  const first = set.current();
  expect(first.map(({ name }) => name)).toEqual(['a', 'b']);
  expect(set.current()).toBe(first);
  served = [...served, tool('c')];
  const second = set.current();
  expect(second.map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  expect([second[0], second[1]]).toEqual([first[0], first[1]]);
  expect(second[1]).toBe(first[1]);
  expect(watched).toEqual(['a', 'b', 'c']);
});

it('a server cannot replace another tool by its own', () => {
  const set = createToolSet([tool('read', 'ours')], [() => [tool('read', 'theirs'), tool('x', 'first')], () => [tool('x', 'second')]]);
  expect(set.current().map(({ description }) => description)).toEqual(['ours', 'first']);
});
