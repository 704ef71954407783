import { cpuGrowth, linear } from '@gatehouse/testkit/cpu-growth';
import { expect, it } from 'vitest';
import { toMessages } from './items-to-messages.ts';

type Items = Exclude<Parameters<typeof toMessages>[0], string>;

const call = (id: string): Items[number] => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' });
const text = (content: string): Items[number] => ({ type: 'message', role: 'assistant', content });
const nothing = () => Promise.reject(new Error('nothing is referred to'));
const calls = (...ids: string[]) => ids.map((id) => ({ id, name: 'f', arguments: '{}' }));

it('merges the items of an answer with calls into one message, and keeps separate texts', async () => {
  const items = [text('a'), text('b'), call('1'), text('c'), call('2'), { type: 'message' as const, role: 'user' as const, content: 'u' }, call('3')];
  expect(await toMessages(items, nothing)).toEqual([
    { role: 'assistant', content: 'a' },
    { role: 'assistant', content: 'b\nc', toolCalls: calls('1', '2') },
    { role: 'user', content: 'u' },
    { role: 'assistant', content: '', toolCalls: calls('3') },
  ]);
});

it('takes time linear in the number of calls', async () => {
  const merge = (length: number) =>
    toMessages(
      Array.from({ length }, (_, n) => call(`${n}`)),
      nothing,
    );
  expect((await merge(5_000))[0]).toHaveProperty('toolCalls.length', 5_000);
  expect(await cpuGrowth(5_000, merge)).toBeLessThan(linear);
});
