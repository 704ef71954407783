import { expect, test } from 'vitest';
import { endReasoning, partsOf, type TurnItem, withEvent, withStored, withText } from './turn-items.ts';

const about = { callId: 'one', toolName: 'exec', description: 'exec ls' };
const play = (steps: readonly (readonly [kind: string, payload: object, length: number])[]): readonly TurnItem[] =>
  steps.reduce<readonly TurnItem[]>((items, [kind, payload, length], at) => withEvent(items, { kind, payload }, length, 1_000 * at), []);

test('collects reasoning and calls with their output, each with its duration', () => {
  const items = play([
    ['message:thinking', { delta: 'First ' }, 0],
    ['message:thinking', { delta: 'check.' }, 0],
    ['tool:started', about, 5],
    ['tool:output', { ...about, delta: 'a\n' }, 5],
    ['tool:output', { ...about, delta: 'b\n' }, 5],
    ['tool:finished', { ...about, outcome: 'ok', durationMs: 30, result: 'a b' }, 5],
    ['message:thinking', { delta: 'Then.' }, 5],
    ['message:sent', { content: 'x' }, 9],
  ]);
  expect(items).toMatchObject([
    { kind: 'reasoning', text: 'First check.', startedAtMs: 0, endedAtMs: 2_000, at: 0 },
    { kind: 'call', toolName: 'exec', output: 'a\nb\n', outcome: 'ok', durationMs: 30, result: 'a b', at: 5 },
    { kind: 'reasoning', text: 'Then.', endedAtMs: undefined, at: 5 },
  ]);
  expect(endReasoning(items, 9_000).at(-1)).toMatchObject({ endedAtMs: 9_000 });
  expect(withEvent(items, { kind: 'tool:started', payload: null }, 0, 0)).toBe(items);
});

test('a call is shown after the text that precedes it, however its event and the text arrive', () => {
  const [call] = play([['tool:started', about, 4]]);
  const shape = (text: string) => partsOf(text, call === undefined ? [] : [call]).map(({ items, text: part }) => [items.length, part]);
  expect(shape('Look at this')).toEqual([
    [0, 'Look at this'],
    [1, ''],
  ]);
  expect(shape('Look at this\n\nFound it')).toEqual([
    [0, 'Look at this'],
    [1, '\n\nFound it'],
  ]);
  expect(partsOf('no calls', [])).toEqual([{ items: [], text: 'no calls' }]);
  const [first] = play([['tool:started', about, 0]]);
  expect(partsOf('One\n\ntwo', first === undefined ? [] : [first])).toEqual([{ items: [first], text: 'One\n\ntwo' }]);
});

test('a stored turn adds arguments and whole results', () => {
  const items = play([['tool:finished', { ...about, outcome: 'ok', result: 'beginning', durationMs: 5 }, 0]]);
  const [stored] = items;
  if (stored?.kind !== 'call') throw new Error('no call');
  expect(withStored(items, [{ ...stored, arguments: '{"a":1}', result: 'all of it', durationMs: undefined }])).toMatchObject([
    { arguments: '{"a":1}', result: 'all of it', durationMs: 5 },
  ]);
});

test('calls that were refused before they began come from the stored turn, and reasoning stays where it was', () => {
  const live = play([
    ['message:thinking', { delta: 'First' }, 0],
    ['message:thinking', { delta: ' more' }, 0],
    ['tool:finished', { ...about, outcome: 'ok' }, 20],
    ['message:thinking', { delta: 'Then' }, 20],
  ]);
  const [, call] = live;
  if (call?.kind !== 'call') throw new Error('no call');
  const refused = { ...call, callId: 'zero', at: 10, result: 'The arguments are wrong' };
  const shape = withStored(live, [refused, { ...call, result: 'done' }]).map((item) => (item.kind === 'call' ? item.callId : item.text));
  expect(shape).toEqual(['First more', 'zero', 'one', 'Then']);
});

test('text and reasoning that arrive while a call runs precede it', () => {
  const begun = play([['tool:started', about, 0]]);
  const late = withEvent(withText(begun, 12, 1), { kind: 'message:thinking', payload: { delta: 'I look' } }, 12, 2);
  expect(late).toMatchObject([
    { kind: 'reasoning', text: 'I look', endedAtMs: 2 },
    { kind: 'call', at: 12 },
  ]);
  expect(withEvent(late, { kind: 'message:thinking', payload: { delta: ' on' } }, 12, 3)).toMatchObject([{ text: 'I look on' }, { kind: 'call' }]);
  const ended = withEvent(late, { kind: 'tool:finished', payload: { ...about, outcome: 'ok' } }, 12, 4);
  expect(withText(ended, 20, 5).at(-1)).toMatchObject({ at: 12 });
});

test('a message that the turn was given is shown where the stored turn has it', () => {
  const live = play([
    ['message:thinking', { delta: 'First' }, 0],
    ['tool:started', about, 10],
    ['tool:finished', { ...about, outcome: 'ok' }, 10],
    ['message:thinking', { delta: 'Then' }, 10],
    ['given', { text: 'Shorter' }, 30],
  ]);
  expect(live.at(-1)).toEqual({ kind: 'given', text: 'Shorter', at: 30 });
  const [, call] = live;
  if (call?.kind !== 'call') throw new Error('no call');
  const stored = [{ ...call, result: 'done' }, { kind: 'given', text: 'Shorter', at: 10 } as const];
  const shape = withStored(live, stored).map((item) => (item.kind === 'call' ? item.callId : item.text));
  expect(shape).toEqual(['First', 'one', 'Shorter', 'Then']);
});
