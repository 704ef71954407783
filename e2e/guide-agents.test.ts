import { execFile, spawn } from 'node:child_process';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '@gatehouse/testkit/free-port';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FakeAnswer, type FakeProvider, startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type Daemon, logOf, root, startDaemon } from '../proving/lib/daemon.ts';
import { makeHome, removeHome } from '../proving/lib/home.ts';
import { findCommand } from '../tools/system-packages.mjs';
import { readGuide, shellOf } from './lib/guide.ts';

// Runs the commands of docs/guide/agents.md verbatim: only the model is scripted, and the package of the MCP
// server comes from this repository instead of the registry.
const run = promisify(execFile);
const missing = findCommand('bwrap') === undefined;
const guide = await readGuide('agents.md');

let place: string;
let provider: FakeProvider;
let daemon: Daemon;
let env: NodeJS.ProcessEnv;

const paste = (heading: string) => guide.paste(env, heading);
const calls = (name: string, args: object): FakeAnswer => ({ toolCalls: [{ id: `call_${name}`, name, arguments: JSON.stringify(args) }] });
/** Number of turns that continued without memories. */
const countLate = () => logOf(daemon).split('the search took too long').length - 1;
/** Returns the last request to the model. */
const shown = () => JSON.stringify(provider.requests.at(-1)?.body);

beforeAll(async () => {
  if (missing) return;
  place = await makeHome();
  const home = join(place, '.gatehouse');
  const server = '@modelcontextprotocol/server-memory';
  await mkdir(home, { mode: 0o700 });
  await writeFile(join(home, 'config.yaml'), guide.blocks('Settings', 'yaml').join('\n'), { mode: 0o600 });
  await copyPackages(server, join(home, 'mcp'));
  provider = await startFakeProvider();
  const port = await freePort();
  daemon = await startDaemon({ home, port, workingDir: place, env: { OPENAI_API_KEY: 'sk-of-the-guide', OPENAI_BASE_URL: provider.url } });
  env = await shellOf(place, daemon);
});
afterAll(async () => {
  await daemon?.kill();
  await provider?.close();
  if (place !== undefined) await removeHome(place);
});

/** Copies a package and its dependencies, as an installation in `folder` would. */
async function copyPackages(name: string, folder: string, done = new Set<string>()): Promise<void> {
  if (done.has(name)) return;
  done.add(name);
  const from = join(root, 'node_modules', name);
  await cp(from, join(folder, 'node_modules', name), { recursive: true });
  const { dependencies = {} }: { dependencies?: Record<string, string> } = JSON.parse(await readFile(join(from, 'package.json'), 'utf8'));
  for (const dependency of Object.keys(dependencies)) await copyPackages(dependency, folder, done);
}

test.skipIf(missing)('an agent is made from a template', { timeout: 60_000 }, async () => {
  expect(await paste('Templates')).toMatch(/^Created scout; its folder is .*\nWrote AGENTS\.md and ROLE\.md\.\n$/);
});

test.skipIf(missing)('it reads a folder', { timeout: 60_000 }, async () => {
  provider.queue(calls('ls', { path: 'documents' }), calls('read', { path: 'documents/bills.txt' }), { text: 'The rope, 45 EUR, is open.' });
  expect(await paste('It reads a folder')).toContain('The rope, 45 EUR, is open.');
  expect(shown()).toContain('Rope, 45 EUR, open');
});

test.skipIf(missing)('it remembers a fact from one conversation in another', { timeout: 60_000 }, async () => {
  const fact = 'The user takes coffee black';
  provider.queue(calls('memory_store', { content: fact }), { text: 'I will.' }, { text: 'Black.' });
  expect(await paste('It remembers')).toContain('Black.');
  const [, question = ''] = guide.blocks('It remembers', 'sh')[0]?.split('\n') ?? [];
  // On a machine that does much else, a turn continues without memories that are found too late, and says so in the log.
  let late = 0;
  while (shown()?.includes(fact) !== true && countLate() > late) {
    late = countLate();
    provider.queue({ text: 'Black.' });
    await run('bash', ['-ec', question], { cwd: root, env, timeout: 30_000 });
  }
  expect(shown()).toContain(fact);
});

test.skipIf(missing)('it uses an MCP server', { timeout: 60_000 }, async () => {
  const entities = [{ name: 'Ada', entityType: 'person', observations: ['owns the boat Gull'] }];
  provider.queue(calls('mcp__graph--create_entities', { entities }), { text: 'Noted.' });
  const said = await paste('It uses an MCP server');
  expect(said).toContain('create_entities');
  expect(said).toContain('Noted.');
  expect(shown()).toContain('owns the boat Gull');
});

test.skipIf(missing)('it asks before a risky command, and runs what was approved', { timeout: 60_000 }, async () => {
  provider.queue(calls('exec', { argv: ['wc', '-l', 'documents/bills.txt'] }), { text: 'Two lines.' });
  const [first = '', second = ''] = guide.blocks('It asks before a risky command', 'sh');
  const waiting = spawn('bash', ['-ec', first], { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => waiting.once('close', resolve));
  let said = '';
  waiting.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
  await expect.poll(() => listApprovals(), { timeout: 20_000 }).toContain('wc');
  expect(said).not.toContain('Two lines.');
  const { stdout } = await run('bash', ['-ec', second], { cwd: root, env, timeout: 30_000 });
  expect(stdout).toContain('documents/bills.txt');
  expect(await ended).toBe(0);
  expect(said).toContain('Two lines.');
  expect(shown()).toContain('2 documents/bills.txt');
});

async function listApprovals(): Promise<string> {
  return (await run(process.execPath, [join(root, 'dist/cli.js'), 'approvals', '-o', 'json'], { env, timeout: 20_000 })).stdout;
}
