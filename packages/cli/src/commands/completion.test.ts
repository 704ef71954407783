import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { createUser } from '../testing/test-io.ts';

const run = promisify(execFile);

test('bash completes commands, options and their values by the script', async () => {
  await using user = await createUser();
  const script = join(user.dir, 'completion');
  await writeFile(script, (await user.run({ args: ['completion', 'bash'] })).out);
  await writeFile(join(user.dir, 'notes.md'), '');
  const complete = async (...line: string[]) => {
    const asked = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gatehouse; echo "${COMPREPLY[*]}"';
    const { stdout } = await run('bash', ['-c', asked, script, 'gatehouse', ...line], { cwd: user.dir });
    return stdout.trim().split(' ');
  };
  expect(await complete('cr')).toEqual(['cron']);
  expect(await complete('cron', 'a')).toEqual(['add']);
  expect(await complete('--url', 'x', 'cron', '--output', 'list', '')).toContain('--json');
  expect(await complete('cron', 'list', '--output', '')).toEqual(['human', 'json']);
  expect(await complete('cron', 'list', '--token-file', 'no')).toEqual(['notes.md']);
  expect(await complete('completion', '')).toEqual(expect.arrayContaining(['bash', 'zsh', 'fish']));
});

test.each(['zsh', 'fish'])('%s gets each command with its description', async (shell) => {
  await using user = await createUser();
  const { out } = await user.run({ args: ['completion', shell] });
  for (const text of ['connect a model, get a first answer', 'list, add, change and run scheduled jobs']) expect(out).toContain(text);
  const script = join(user.dir, 'completion');
  await writeFile(script, out);
  const checked = await run(shell, ['-n', script]).catch((error: NodeJS.ErrnoException) => error);
  // Only where that shell is installed.
  if (!(checked instanceof Error && checked.code === 'ENOENT')) expect(checked).toMatchObject({ stderr: '' });
});

test('another shell is refused with the list of those that are known', async () => {
  await using user = await createUser();
  const { code, err } = await user.run({ args: ['completion', 'tcsh'] });
  expect([code, err]).toEqual([2, expect.stringContaining('Allowed choices are bash, zsh, fish')]);
});
