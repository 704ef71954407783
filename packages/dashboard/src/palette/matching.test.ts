import { expect, test } from 'vitest';
import { matching } from './matching.ts';

const entries = [
  { label: 'Drain time', hint: 'gateway.drainMs', about: 'How long running turns may take after the port is closed.' },
  { label: 'Port', hint: 'gateway.port', about: 'Where the gateway listens.' },
  { label: 'Report', hint: undefined },
];
const labels = (query: string) => matching(entries, query).map(({ label }) => label);

test('entries are found by what is shown and by their descriptions, the shown ones first', () => {
  expect(labels('port')).toEqual(['Port', 'Report', 'Drain time']);
  expect(labels('LISTENS gateway')).toEqual(['Port']);
  expect(labels('drain turns')).toEqual(['Drain time']);
  expect(labels('nothing of this')).toEqual([]);
  expect(labels('')).toEqual(['Drain time', 'Port', 'Report']);
});
