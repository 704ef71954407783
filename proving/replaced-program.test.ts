import { expect, test } from 'vitest';
import { proveReplacedProgram } from './replaced-program.ts';

test('a daemon whose dist/ is removed says so for each missing file', async () => {
  expect((await proveReplacedProgram({ jobs: false })).wrong).toEqual([]);
});
