import { createStepClock, type StepClock } from '@gatehouse/testkit';
import { beforeEach, expect, test } from 'vitest';
import type { Act, Adapter, LookUp, SendResult } from '../../../channels/port.ts';
import { toFragment } from '../../../kernel/json-fragment.ts';
import { Preview } from './preview.ts';

let clock: StepClock;
let seen: string[];
beforeEach(() => {
  clock = createStepClock();
  seen = [];
});

interface Script {
  readonly sent?: SendResult;
  /** Ends of several sends. */
  readonly sends?: SendResult[];
  readonly edited?: Act<object>;
  readonly messageId?: string;
  readonly found?: LookUp[];
  readonly keyWindowMs?: number;
}

function preview({
  sends = [],
  sent = { is: 'sent', platformId: 'm1' },
  edited = { is: 'done', value: {} },
  messageId,
  found,
  keyWindowMs,
}: Script = {}) {
  const adapter: Partial<Adapter> = {
    send: ({ text }, { key }) => {
      seen.push(`send ${key} ${text}`);
      return Promise.resolve(sends.length > 1 ? (sends.shift() ?? sent) : (sends[0] ?? sent));
    },
    ...(found !== undefined && {
      lookUp: (_part, { key, sinceMs }) => {
        seen.push(`look for ${key} since ${sinceMs === 0 ? 'the message' : 'the send'}`);
        return Promise.resolve((found.length > 1 ? found.shift() : found[0]) ?? { is: 'absent' });
      },
    }),
    edit: (message, { text }) => {
      seen.push(`edit ${message.messageId} ${text}`);
      return Promise.resolve(edited);
    },
  };
  return new Preview({
    adapter: adapter as Adapter,
    place: { conversationId: 'ada' },
    key: 'k',
    messageId,
    keyWindowMs,
    sinceMs: 0,
    clock,
    render: (text) => Promise.resolve({ text }),
    begin: () => Promise.resolve(void seen.push('begin')),
    sent: (id) => Promise.resolve(void seen.push(`stored ${id}`)),
  });
}

async function pass(ms: number): Promise<void> {
  clock.advance(ms);
  for (let turns = 0; turns < 20; turns += 1) await Promise.resolve();
}

test('one message is sent after a second, and edited at most once a second while there is more text', async () => {
  const one = preview();
  one.text(toFragment('Hello'));
  await pass(999);
  expect(seen).toEqual([]);
  await pass(1);
  expect(seen).toEqual(['begin', 'send k Hello', 'stored m1']);
  one.text(toFragment(', "you"'));
  one.text(toFragment('!'));
  await pass(1_000);
  await pass(1_000);
  expect(seen.slice(3)).toEqual(['edit m1 Hello, "you"!']);
  expect(await one.end()).toBe('m1');
  await pass(60_000);
  expect(seen).toHaveLength(4);
  expect(clock.pending()).toBe(0);
});

test('a short answer has no preview', async () => {
  const one = preview();
  one.text(toFragment('Hello'));
  expect(await one.end()).toBeUndefined();
  await pass(5_000);
  expect(seen).toEqual([]);
});

test('the message of an earlier run is continued', async () => {
  const one = preview({ messageId: 'm7' });
  one.text(toFragment('Hello'));
  await pass(1_000);
  expect(seen).toEqual(['edit m7 Hello']);
  expect(await one.end()).toBe('m7');
});

test('a limit of the platform is waited out', async () => {
  const one = preview({ messageId: 'm7', edited: { is: 'failed', kind: 'rate_limited', text: 'slow', retryAfterMs: 40_000 } });
  one.text(toFragment('Hello'));
  await pass(1_000);
  one.text(toFragment('!'));
  await pass(39_000);
  expect(seen).toHaveLength(1);
  await pass(1_000);
  expect(seen).toHaveLength(2);
  await one.end();
});

test.each([
  ['an ambiguous send', { sent: { is: 'ambiguous', text: 'cut' } }, ['begin', 'send k Hello'], ''],
  ['a message that is gone', { messageId: 'm7', edited: { is: 'failed', kind: 'not_found', text: 'gone' } }, ['edit m7 Hello'], 'm7'],
] as const)('%s ends the preview', async (_name, script, expected, id) => {
  const one = preview(script);
  one.text(toFragment('Hello'));
  await pass(1_000);
  one.text(toFragment('!'));
  await pass(10_000);
  expect(seen).toEqual(expected);
  expect(await one.end()).toBe(id);
});

const cut: SendResult = { is: 'ambiguous', text: 'cut' };

test('a send whose answer was lost is found in the history, and edited', async () => {
  const one = preview({ sent: cut, found: [{ is: 'absent' }, { is: 'found', platformId: 'm3' }] });
  one.text(toFragment('Hello'));
  await pass(1_000);
  await pass(1_000);
  one.text(toFragment('!'));
  await pass(5_000);
  expect(seen.slice(2)).toEqual(['look for k since the send', 'look for k since the send', 'stored m3']);
  await pass(5_000);
  expect(seen.at(-1)).toBe('edit m3 Hello!');
  expect(await one.end()).toBe('m3');
});

test('a send that two look-ups do not find was not sent: the next one is the first', async () => {
  const one = preview({ sends: [cut, { is: 'sent', platformId: 'm4' }], found: [{ is: 'absent' }] });
  one.text(toFragment('Hello'));
  for (const ms of [1_000, 1_000, 5_000]) await pass(ms);
  one.text(toFragment('!'));
  await pass(5_000);
  expect(seen.slice(4)).toEqual(['begin', 'send k Hello!', 'stored m4']);
  expect(await one.end()).toBe('m4');
});

test('a platform that knows its keys again is asked with the same key', async () => {
  const one = preview({ sends: [cut, { is: 'sent', platformId: 'm5' }], keyWindowMs: 120_000 });
  one.text(toFragment('Hello'));
  await pass(1_000);
  await pass(1_000);
  expect(seen).toEqual(['begin', 'send k Hello', 'send k Hello', 'stored m5']);
  expect(await one.end()).toBe('m5');
});

test('what an earlier process may have sent is looked for, also when nothing more is shown', async () => {
  const one = preview({ messageId: '', found: [{ is: 'found', platformId: 'm6' }] });
  expect(await one.end()).toBe('m6');
  expect(seen).toEqual(['look for k since the message', 'stored m6']);
  expect(await preview({ messageId: '' }).end()).toBe('');
});
