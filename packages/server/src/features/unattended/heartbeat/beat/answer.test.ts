import { cpuGrowth, linear } from '@gatehouse/testkit/cpu-growth';
import { expect, test } from 'vitest';
import { readAnswer } from './answer.ts';

test.each([
  ['HEARTBEAT_OK', 'ok', ''],
  ['', 'ok', ''],
  ['  \n', 'ok', ''],
  ['**HEARTBEAT_OK**', 'ok', ''],
  ['`HEARTBEAT_OK`.', 'ok', ''],
  ['[HEARTBEAT_OK]', 'ok', ''],
  ['> (HEARTBEAT_OK) \u{2705}', 'ok', ''],
  ['HEARTBEAT_OK: all is well', 'ok', 'all is well'],
  ['All is well.\n\nHEARTBEAT_OK', 'ok', 'All is well'],
  [`HEARTBEAT_OK ${'x'.repeat(301)}`, 'tell', 'x'.repeat(301)],
  [`HEARTBEAT_OK ${'x'.repeat(300)}`, 'ok', 'x'.repeat(300)],
  ['The word HEARTBEAT_OK is in the middle.', 'tell', 'The word HEARTBEAT_OK is in the middle.'],
  ['HEARTBEAT_OKAY is not the token', 'tell', 'HEARTBEAT_OKAY is not the token'],
  ['The disk is full.', 'tell', 'The disk is full.'],
])('%j is %s', (answer, kind, text) => expect(readAnswer(answer, 300)).toEqual({ kind, text }));

test('any text next to the token is reported when none is allowed', () => {
  expect(readAnswer('HEARTBEAT_OK fine', 0)).toEqual({ kind: 'tell', text: 'fine' });
  expect(readAnswer('HEARTBEAT_OK', 0)).toEqual({ kind: 'ok', text: '' });
});

test('a long answer is parsed in linear time', async () => {
  expect(await cpuGrowth(12_500, (times) => readAnswer(`${' *_'.repeat(times)}x`, 300))).toBeLessThan(linear);
});
