import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeAnswer, type FakeProvider, startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type Daemon, startDaemon } from '../proving/lib/daemon.ts';
import { makeHome, removeHome } from '../proving/lib/home.ts';
import { rpcCall } from '../proving/lib/rpc.ts';
import { findCommand } from '../tools/system-packages.mjs';
import { readGuide, shellOf } from './lib/guide.ts';

// Pastes the commands of docs/guide/delegation.md in order: first without a model, then with a scripted one.
const missing = findCommand('bwrap') === undefined;
const guide = await readGuide('delegation.md');
const longMs = 120_000;
const offline = 'No language model is connected';

let workDir: string;
let daemon: Daemon;
let env: NodeJS.ProcessEnv;
const paste = (heading: string, index?: number) => guide.paste(env, heading, index);
const call = (method: string, params: object = {}) => rpcCall(daemon, method, params);

async function begin(more: Readonly<Record<string, string>>, config?: string): Promise<void> {
  workDir = await makeHome();
  const home = join(workDir, '.gatehouse');
  await mkdir(home, { mode: 0o700 });
  if (config !== undefined) await writeFile(join(home, 'config.yaml'), config, { mode: 0o600 });
  daemon = await startDaemon({ home, port: await freePort(), workingDir: workDir, env: more });
  env = await shellOf(workDir, daemon);
}
async function end(): Promise<void> {
  await daemon?.kill();
  if (workDir !== undefined) await removeHome(workDir);
}

describe('without a model', () => {
  beforeAll(() => begin({}));
  afterAll(end);

  const status = async () =>
    (await call('graph.status', { graphId: 'research' })) as { status: string; nodes: Record<string, { waitsForAnswer?: boolean }> };

  test('a graph runs from one command, asks, is answered and reports', { timeout: longMs }, async () => {
    expect(await paste('A graph in one command', 0)).toMatch(/^Started: gr_/);
    await expect.poll(async () => (await status()).nodes['gate']?.waitsForAnswer, { timeout: 20_000, interval: 50 }).toBe(true);
    const said = await paste('A graph in one command', 1);
    expect(said).toContain('Shall the report on tides be written?');
    expect(said).toContain('gate is approved.');
    expect(said).toContain(`The graph is completed.\n\nreport:\n  ${offline}`);
    expect(said).toContain('5 of 5 completed');
    const { messages } = (await call('inbox.list')) as { messages: { text: string }[] };
    expect(messages.filter(({ text }) => text.includes('has completed: 5 of 5 nodes completed'))).toHaveLength(1);
  });

  test('a graph is saved, run by its name and cancelled', { timeout: longMs }, async () => {
    const said = await paste('Saved graphs');
    expect(said).toContain('Ready to run: 5 nodes, facts, debate, vote, gate, report.');
    expect(said).toContain('Saved research: sg_');
    expect(said).toContain('running nodes finish');
    await expect.poll(async () => (await status()).status, { timeout: 20_000, interval: 50 }).toBe('cancelled');
  });

  test('steering an ended run reports that it has ended', { timeout: longMs }, async () => {
    expect(await paste('Steering and stopping')).toMatch(/It has ended already\.\n[\s\S]*state +completed[\s\S]*It has ended already\.\n$/);
  });

  test('a sub-agent runs from the command line', { timeout: longMs }, async () => {
    const said = await paste('Sub-agents');
    expect(said).toContain(offline);
    expect(said).toContain('List the open bills in documents');
    expect(said).toMatch(/New sub-agents are rejected\.\nNew sub-agents are rejected\.\nNew sub-agents are accepted\.\n$/);
  });
});

describe('with a model', () => {
  let provider: FakeProvider;
  const script = guide.blocks('Scripts', 'ts').join('\n');
  const table = ['day,hour,height', ...Array.from({ length: 3000 }, (_, at) => `${at},6,4.1`)].join('\n');
  const use = (...calls: readonly [string, object][]): FakeAnswer => ({
    toolCalls: calls.map(([name, args], at) => ({ id: `call_${name}_${at}`, name, arguments: JSON.stringify(args) })),
  });

  /** Answers depending on the messages so far. */
  function play(body: unknown): FakeAnswer {
    const { messages } = body as { messages: { role: string; content: unknown; tool_calls?: object[] }[] };
    const prompt = JSON.stringify(messages);
    const steps = messages.filter(({ tool_calls: calls }) => calls !== undefined).length;
    if (prompt.includes('You are a sub-agent')) {
      if (prompt.includes('last ten years') || prompt.includes('last three years') || prompt.includes('Watch the harbour')) return { hang: true };
      return { text: prompt.includes('as CSV') ? table : prompt.includes('Look into tides') ? 'Tides come twice a day.' : 'Walls break waves.' };
    }
    if (prompt.includes('sum up what they find')) {
      if (steps === 0) return use(['sessions_spawn', { task: 'Look into tides' }], ['sessions_spawn', { task: 'Look into sea walls' }]);
      if (steps === 1) return use(['subagents', { action: 'wait' }]);
      return {
        text: prompt.includes('Tides come twice a day.') && prompt.includes('Walls break waves.') ? 'Both are known now.' : 'Something is missing.',
      };
    }
    if (prompt.includes('Use a script')) {
      if (steps === 0) return use(['orchestrate', { script }]);
      return { text: prompt.includes('open: 75 EUR') ? 'They come to 75 EUR.' : `It went wrong: ${prompt.slice(-500)}` };
    }
    return { text: prompt.includes('The build is green') ? 'The release comes next.' : 'Hello.' };
  }

  beforeAll(async () => {
    provider = await startFakeProvider({ answer: ({ path, body }) => (path.endsWith('/chat/completions') ? play(body) : undefined) });
    await begin({ OPENAI_API_KEY: 'sk-of-the-guide', OPENAI_BASE_URL: provider.url }, guide.blocks('Sub-agents', 'yaml').join('\n'));
  });
  afterAll(async () => {
    await end();
    await provider.close();
  });

  test('a conversation starts two sub-agents and waits for them', { timeout: longMs }, async () => {
    const said = await paste('Sub-agents from a conversation');
    expect(said).toContain('Both are known now.');
    expect(said).toMatch(/├─ Look into tides +completed.*sr_.*\n└─ Look into sea walls +completed.*sr_/);
  });

  test('a sub-agent is steered and killed', { timeout: longMs }, async () => {
    const said = await paste('Steering and stopping');
    expect(said).toContain('Only those of the last three years');
    expect(said).toMatch(/state +running/);
    expect(said).toMatch(/Killed sr_\S+\.\n$/);
    const { runs } = (await call('subagent.list')) as { runs: { status: string }[] };
    expect(runs.filter(({ status: state }) => state === 'running' || state === 'queued')).toEqual([]);
  });

  test('a large result is downloaded as a file', { timeout: longMs }, async () => {
    expect(await paste('Large results')).toContain('Full result: csv');
    expect((await readFile(join(workDir, 'tides.csv'), 'utf8')).trim()).toBe(table);
  });

  test('a message is sent to a conversation and answered', { timeout: longMs }, async () => {
    const said = await paste('Messages between conversations');
    expect(said).toContain('"response": "The release comes next."');
  });

  test.skipIf(missing)('a script sums up three files', { timeout: longMs }, async () => {
    expect(await paste('Scripts')).toContain('They come to 75 EUR.');
  });

  test('a whole run is evicted and killed', { timeout: longMs }, async () => {
    const said = await paste('Autonomy');
    expect(said).toContain('Watch the harbour all day');
    expect(said).toContain('"evicted": true');
    expect(said).toMatch(/Killed [12] runs\./);
    expect(said).toContain('"profile": "standard"');
    expect(said).toContain('run.kill');
    const { runs } = (await call('run.list', { state: 'active' })) as { runs: object[] };
    expect(runs).toEqual([]);
  });

  test.skipIf(missing)('every command of the page was pasted, and its pictures exist', () => {
    expect(guide.unpasted()).toEqual([]);
    expect(guide.pictures).toHaveLength(3);
    expect(guide.pictures.filter((path) => !existsSync(path))).toEqual([]);
  });
});
