import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

/** Lists the modules that a process loads which imports the server, and then something more. */
const program = (more: string) => `
  import { registerHooks } from 'node:module';
  const seen = [];
  registerHooks({ load(url, context, next) { seen.push(url); return next(url, context); } });
  await import(${JSON.stringify(new URL('../../../server.ts', import.meta.url).href)});
  ${more}
  console.log(JSON.stringify(seen));
`;
const libraries = /\/node_modules\/(?:grammy|@discordjs|@slack|imapflow|postal-mime|@mixmark-io)\//;
const wires = /\/channels\/(irc|telegram|discord|slack|matrix|email)\/\1\.ts$/;

function loaded(more = ''): readonly string[] {
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program(more)], { encoding: 'utf8' });
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as readonly string[];
}

test('no wire and no library of a platform is loaded before an instance is enabled', () => {
  const seen = loaded();
  expect(seen.some((url) => url.endsWith('/telegram/platform.ts'))).toBe(true);
  expect(seen.filter((url) => libraries.test(url) || wires.test(url))).toEqual([]);
});

test('an instance loads the wire of its platform alone', () => {
  const url = new URL('../../../channels/telegram/telegram.ts', import.meta.url).href;
  const seen = loaded(`await import(${JSON.stringify(url)});`);
  expect(seen.flatMap((one) => wires.exec(one)?.[1] ?? [])).toEqual(['telegram']);
  expect(seen.some((one) => one.includes('/node_modules/grammy/'))).toBe(true);
});
