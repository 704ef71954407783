import { expect, test } from 'vitest';
import { shownTask } from './template.ts';

test('a shown task has its variables, cut, and names the results of other nodes', () => {
  expect(shownTask('Compare {{facts.result}} with ${TOPIC}', { TOPIC: 'tides' })).toBe('Compare {{facts.result}} with tides');
  expect(shownTask('About ${TOPIC}', { TOPIC: 'x'.repeat(50_000) })).toHaveLength(2_000);
});
