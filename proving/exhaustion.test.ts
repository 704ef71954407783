import { expect, test } from 'vitest';
import { containersMissing, proveEndlessProvider, proveTwoContainers } from './exhaustion.ts';

test('three streams that do not end cost little and end with an error', async () => {
  expect(await proveEndlessProvider({ megabytes: 20 })).toMatchObject({ wrong: [] });
});

const missing = containersMissing();
test.runIf(missing === undefined)('a second container on the same home is refused', async () => {
  expect(await proveTwoContainers()).toEqual({ wrong: [] });
});
