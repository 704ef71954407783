import { expect, test } from 'vitest';
import { proveArrivalOrder } from './e21-arrival-order.ts';

test('fifty messages to one conversation are fifty turns, one after the other, in the order of their arrival', async () => {
  const { wrong, ...report } = await proveArrivalOrder({ conversations: 2 });
  expect(wrong).toEqual([]);
  expect(report).toEqual({ turns: 100, atOnce: 1 });
});
