import { expect, test } from 'vitest';
import { proveReplacedProgram } from './replaced-program.ts';

test('a daemon whose dist/ is removed says so for each part that it lacks', async () => {
  expect((await proveReplacedProgram({ jobs: false })).wrong).toEqual([]);
});
