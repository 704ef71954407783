import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeAnswer, type FakeProvider, startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type Daemon, startDaemon } from '../proving/lib/daemon.ts';
import { freePort, makeHome, removeHome } from '../proving/lib/home.ts';
import { rpcCall } from '../proving/lib/rpc.ts';
import { findCommand } from '../tools/system-packages.mjs';
import { readGuide, shellOf } from './lib/guide.ts';

// What docs/guide/teams.md tells to paste, pasted in its order: first without any model, then with one that is played.
const missing = findCommand('bwrap') === undefined;
const guide = await readGuide('teams.md');
const longMs = 120_000;
const offline = 'No language model is connected';

let place: string;
let daemon: Daemon;
let env: NodeJS.ProcessEnv;
const paste = (heading: string, index?: number) => guide.paste(env, heading, index);
const call = (method: string, params: object = {}) => rpcCall(daemon, method, params);

async function begin(more: Readonly<Record<string, string>>, config?: string): Promise<void> {
  place = await makeHome();
  const home = join(place, '.gatehouse');
  await mkdir(home, { mode: 0o700 });
  if (config !== undefined) await writeFile(join(home, 'config.yaml'), config, { mode: 0o600 });
  daemon = await startDaemon({ home, port: await freePort(), workingDir: place, env: more });
  env = shellOf(place, daemon);
}
async function end(): Promise<void> {
  await daemon?.kill();
  if (place !== undefined) await removeHome(place);
}

describe('without a model', () => {
  beforeAll(() => begin({}));
  afterAll(end);

  const status = async () =>
    (await call('graph.status', { graphId: 'research' })) as { status: string; nodes: Record<string, { waitsForAnswer?: boolean }> };

  test('a team runs from one command, asks, is answered and reports', { timeout: longMs }, async () => {
    expect(await paste('A team in one command', 0)).toMatch(/^Began: gr_/);
    await expect.poll(async () => (await status()).nodes['gate']?.waitsForAnswer, { timeout: 20_000, interval: 500 }).toBe(true);
    const said = await paste('A team in one command', 1);
    expect(said).toContain('Shall the report on tides be written?');
    expect(said).toContain('gate is approved.');
    expect(said).toContain(`The graph is completed.\n\nreport:\n  ${offline}`);
    expect(said).toContain('5 of 5 completed');
    const { messages } = (await call('inbox.list')) as { messages: { text: string }[] };
    expect(messages.filter(({ text }) => text.includes('has completed: 5 of 5 nodes completed'))).toHaveLength(1);
  });

  test('a graph is kept, run under its name and cancelled', { timeout: longMs }, async () => {
    const said = await paste('Graphs that are kept');
    expect(said).toContain('The graph can run: 5 nodes, facts, debate, vote, gate, report.');
    expect(said).toContain('Saved research: sg_');
    expect(said).toContain('starts no further node');
    await expect.poll(async () => (await status()).status, { timeout: 20_000, interval: 500 }).toBe('cancelled');
  });

  test('steering a run that has ended already says so', { timeout: longMs }, async () => {
    expect(await paste('Steering and stopping')).toMatch(/It has ended already\.\n[\s\S]*state +completed[\s\S]*It has ended already\.\n$/);
  });

  test('a sub-agent runs from the command line', { timeout: longMs }, async () => {
    const said = await paste('Sub-agents');
    expect(said).toContain(offline);
    expect(said).toContain('Tell which bills in documents are open');
    expect(said).toMatch(/New sub-agents are refused\.\nNew sub-agents are refused\.\nNew sub-agents are taken\.\n$/);
  });
});

describe('with a model', () => {
  let provider: FakeProvider;
  const script = guide.blocks('Scripts', 'ts').join('\n');
  const table = ['day,hour,height', ...Array.from({ length: 3000 }, (_, at) => `${at},6,4.1`)].join('\n');
  const use = (...calls: readonly [string, object][]): FakeAnswer => ({
    toolCalls: calls.map(([name, args], at) => ({ id: `call_${name}_${at}`, name, arguments: JSON.stringify(args) })),
  });

  /** The model, by what it has been told so far. */
  function play(body: unknown): FakeAnswer {
    const { messages } = body as { messages: { role: string; content: unknown; tool_calls?: object[] }[] };
    const told = JSON.stringify(messages);
    const steps = messages.filter(({ tool_calls: calls }) => calls !== undefined).length;
    if (told.includes('You are a sub-agent')) {
      if (told.includes('last ten years') || told.includes('last three years') || told.includes('Watch the harbour')) return { hang: true };
      return { text: told.includes('as CSV') ? table : told.includes('Look into tides') ? 'Tides come twice a day.' : 'Walls break waves.' };
    }
    if (told.includes('sum up what they find')) {
      if (steps === 0) return use(['sessions_spawn', { task: 'Look into tides' }], ['sessions_spawn', { task: 'Look into sea walls' }]);
      if (steps === 1) return use(['subagents', { action: 'wait' }]);
      return {
        text: told.includes('Tides come twice a day.') && told.includes('Walls break waves.') ? 'Both are known now.' : 'Something is missing.',
      };
    }
    if (told.includes('Use a script')) {
      if (steps === 0) return use(['orchestrate', { script }]);
      return { text: told.includes('open: 75 EUR') ? 'They come to 75 EUR.' : `It went wrong: ${told.slice(-500)}` };
    }
    return { text: told.includes('The build is green') ? 'The release comes next.' : 'Hello.' };
  }

  beforeAll(async () => {
    provider = await startFakeProvider({ answer: ({ path, body }) => (path.endsWith('/chat/completions') ? play(body) : undefined) });
    await begin({ OPENAI_API_KEY: 'sk-of-the-guide', OPENAI_BASE_URL: provider.url }, guide.blocks('Sub-agents', 'yaml').join('\n'));
  });
  afterAll(async () => {
    await end();
    await provider.close();
  });

  test('a conversation sets two sub-agents going and waits for them', { timeout: longMs }, async () => {
    const said = await paste('Sub-agents from a conversation');
    expect(said).toContain('Both are known now.');
    expect(said).toMatch(/├─ sr_.*completed.*\n└─ sr_.*completed/);
  });

  test('a sub-agent is steered and killed', { timeout: longMs }, async () => {
    const said = await paste('Steering and stopping');
    expect(said).toContain('Only those of the last three years');
    expect(said).toMatch(/state +running/);
    expect(said).toMatch(/Ended sr_\S+\.\n$/);
    const { runs } = (await call('subagent.list')) as { runs: { status: string }[] };
    expect(runs.filter(({ status: state }) => state === 'running' || state === 'queued')).toEqual([]);
  });

  test('a large result is fetched as a file', { timeout: longMs }, async () => {
    expect(await paste('Large results')).toContain('The whole result: csv');
    expect((await readFile(join(place, 'tides.csv'), 'utf8')).trim()).toBe(table);
  });

  test('a message is sent to a conversation and answered', { timeout: longMs }, async () => {
    const said = await paste('Messages between conversations');
    expect(said).toContain('"response": "The release comes next."');
  });

  test.skipIf(missing)('a script adds up what three files hold', { timeout: longMs }, async () => {
    expect(await paste('Scripts')).toContain('They come to 75 EUR.');
  });

  test('a whole run is evicted and killed', { timeout: longMs }, async () => {
    const said = await paste('Autonomy');
    expect(said).toContain('Watch the harbour all day');
    expect(said).toContain('"evicted": true');
    expect(said).toMatch(/Ended [12] runs\./);
    expect(said).toContain('"profile": "standard"');
    expect(said).toContain('run.kill');
    const { runs } = (await call('run.list', { state: 'active' })) as { runs: object[] };
    expect(runs).toEqual([]);
  });

  test.skipIf(missing)('nothing of the page was left out, and its pictures are there', () => {
    expect(guide.unpasted()).toEqual([]);
    expect(guide.pictures).toHaveLength(3);
    expect(guide.pictures.filter((path) => !existsSync(path))).toEqual([]);
  });
});
