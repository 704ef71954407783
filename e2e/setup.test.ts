import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '@gatehouse/testkit/free-port';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type FakeProvider, startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { root, startDaemon } from '../proving/lib/daemon.ts';
import { filesBelow, makeHome, removeHome } from '../proving/lib/home.ts';
import { openTerminal, scriptPath } from './lib/terminal.ts';

const run = promisify(execFile);
const cli = join(root, 'dist', 'cli.js');
const key = 'sk-the-key-of-a-person-at-a-terminal';
const enter = '\r';

/** `gatehouse setup` in an empty home, from the first key to the first answer. */
describe.skipIf(scriptPath === undefined)('gatehouse setup on a terminal', () => {
  let place: string;
  let home: string;
  let provider: FakeProvider;
  let env: Record<string, string>;

  beforeEach(async () => {
    place = await makeHome();
    home = join(place, 'home');
    provider = await startFakeProvider({ apiKey: key, models: ['m-large', 'm-small'], answer: () => ({ text: 'I am Gate, and I work.' }) });
    env = { PATH: process.env['PATH'] ?? '', HOME: place, TERM: 'xterm', GATEHOUSE_HOME: home, GATEHOUSE_PORT: String(await freePort()) };
  });
  afterEach(async () => {
    await provider.close();
    await removeHome(place);
  });

  const open = (...args: string[]) => openTerminal([process.execPath, cli, 'setup', ...args], { env, cwd: place });
  const setup = (...args: string[]) => run(process.execPath, [cli, 'setup', ...args], { env, timeout: 30_000 });

  test('four inputs lead from an empty home to the first answer, and the key is seen nowhere', async () => {
    await using terminal = open();
    await terminal.sees('Starting the daemon');
    await terminal.sees('Which model provider?');
    terminal.type(`compatible${enter}`);
    await terminal.sees('Address of OpenAI-compatible server');
    terminal.type(`${provider.url}${enter}`);
    await terminal.sees('API key');
    terminal.type(`${key}${enter}`);
    await terminal.sees('Which model?');
    expect(await commandLines()).not.toContain(key);
    terminal.type(enter);
    await terminal.sees('I am Gate, and I work.');
    await terminal.sees('What is your agent for?');
    terminal.type(enter);
    await terminal.sees('Connect a client?');
    terminal.type(enter);
    await terminal.sees('Limit for 24 hours');
    terminal.type(enter);
    await terminal.sees('The daemon was started for this setup.');
    terminal.type(`\u001b[B${enter}`);
    await terminal.sees('gatehouse start');
    expect(await terminal.exit).toBe(0);
    expect(terminal.shown()).not.toContain(key);
    for (const file of await filesBelow(home)) expect([file, (await readFile(file)).includes(key)]).toEqual([file, false]);
    expect(existsSync(join(home, 'gatehouse.sock'))).toBe(false);

    // Everything is connected now: a second run needs nothing, with the daemon stopped or running.
    const again = JSON.parse((await setup('--json')).stdout);
    expect(again).toMatchObject({ model: { provider: 'server', model: 'm-large', verdict: 'kept' }, answer: 'I am Gate, and I work.' });
    const daemon = await startDaemon({ home, port: Number(env['GATEHOUSE_PORT']), token: null });
    try {
      expect(JSON.parse((await setup('--json', '--budget-tokens', '9000000')).stdout)).toMatchObject({ budget: { perDayTokens: 9_000_000 } });
    } finally {
      await daemon.kill();
    }
  });

  test('Ctrl-C while the daemon starts and at a question ends both, and the home can be used', async () => {
    await using early = open();
    await early.sees('Starting the daemon');
    early.type('\u0003');
    expect(await early.exit).toBe(130);
    await using late = open();
    await late.sees('Which model provider?');
    late.type(`no such vendor${enter}`);
    await late.sees('Nothing is found');
    late.type('\u0003');
    expect(await late.exit).toBe(130);
    await late.sees('`gatehouse setup` continues.');
    expect(existsSync(join(home, 'gatehouse.sock'))).toBe(false);
    const done = await setup('--vendor', 'openai-compatible', '--base-url', provider.url, '--json').catch((error: unknown) => error);
    // The provider wants a key.
    expect(done).toMatchObject({ code: 1, stderr: expect.stringContaining('"code":"key_refused"') });
  });

  test('without colours, and where the cursor cannot be moved, it prints plain lines', async () => {
    env = { ...env, TERM: 'dumb', NO_COLOR: '1' };
    await using terminal = open();
    await terminal.sees('13. OpenAI-compatible server');
    terminal.type(`13${enter}`);
    await terminal.sees('Address of OpenAI-compatible server');
    terminal.type(`${provider.url}${enter}`);
    await terminal.sees('API key');
    terminal.type(`sk-wrong${enter}`);
    await terminal.sees('Incorrect API key provided');
    // At the start of a line: the sentence of the provider names it too.
    await terminal.sees('\nAPI key');
    terminal.type(`${key}${enter}`);
    await terminal.sees('Which model?');
    terminal.type(`m-small${enter}`);
    await terminal.sees('I am Gate, and I work.');
    await terminal.sees('What is your agent for?');
    terminal.type('\u0003');
    expect(await terminal.exit).toBe(130);
    expect(terminal.shown()).not.toContain('\u001b');
    expect(terminal.shown()).not.toContain(key);
  });
});

/** Command lines of all processes. */
async function commandLines(): Promise<string> {
  const lines: string[] = [];
  for await (const file of glob('/proc/[0-9]*/cmdline')) lines.push(await readFile(file, 'utf8').catch(() => ''));
  return lines.join('\n');
}
