import { expect, test } from 'vitest';
import { matrixActions } from './matrix.ts';

const accepts = (name: keyof typeof matrixActions, params: object) => matrixActions[name].params().safeParse(params).success;

test('ids of actions have the shape of Matrix', () => {
  for (const id of ['!abc:example.org', '!v12-without-server', '#lab:example.org']) expect(accepts('join', { room_id_or_alias: id })).toBe(true);
  for (const id of ['lab', '@ada:example.org', '#a b:example.org', '']) expect(accepts('join', { room_id_or_alias: id })).toBe(false);
  for (const name of ['invite', 'kick', 'ban'] as const) {
    expect(accepts(name, { user_id: '@ada:example.org', reason: 'asked' })).toBe(true);
    for (const user of ['ada', '@ada', '@ada:a/b', '!room:example.org']) expect(accepts(name, { user_id: user })).toBe(false);
  }
  expect(accepts('leave', { room_id: '!other:example.org' })).toBe(false);
});

test('what takes something from people is destructive', () => {
  expect(Object.entries(matrixActions).flatMap(([name, { risk }]) => (risk === 'destructive' ? [name] : []))).toEqual(['leave', 'kick', 'ban']);
});
