import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { collector, createUser } from '../testing/test-io.ts';

/** Creates a user of a real server in this process; models never answer a task with WAIT, and otherwise repeat their task. */
async function open(options: Parameters<typeof startTestServer>[0] = {}) {
  const server = await startTestServer(options);
  server.provider.setAnswer(({ body }) => {
    const text = JSON.stringify(body);
    if (text.includes('WAIT')) return { hang: true };
    if (text.includes('FAIL')) return { status: 400, error: { message: 'no' } };
    return { text: 'Tides\u001b[31m come twice', usage: { input: 20, output: 5 } };
  });
  const user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token };
  return {
    server,
    run: (...args: string[]) => user.run({ args, env, io: { now: () => Date.now() } }),
    /** Starts a command that runs until `interrupt`. */
    start(...args: string[]) {
      const out = collector();
      let interrupt = () => {};
      const io = { now: () => Date.now(), stdout: out.stream, onInterrupt: (handler: () => void) => ((interrupt = handler), () => undefined) };
      return { out, ended: user.run({ args, env, io }), interrupt: () => interrupt() };
    },
    file: async (name: string, content: string) => {
      await mkdir(user.dir, { recursive: true });
      await writeFile(join(user.dir, name), content);
    },
    async [Symbol.asyncDispose]() {
      await user[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

const idIn = (text: string, prefix: string): string => new RegExp(`${prefix}_[0-9a-f-]{36}`).exec(text)?.[0] ?? '';
const lineOf = (out: string, text: string): string => out.split('\n').find((line) => line.includes(text)) ?? '';

const report = `label: Report
nodes:
  - node_id: research
    task: Collect facts about \${TOPIC}.
    agent: default
  - node_id: vote
    task: Is it true?
    type_id: vote
    type_config: { voters: [default, default] }
    depends_on: [research]
  - node_id: report
    task: Write {{research.result}}
    agent: default
edges:
  - { from: vote, to: report }
  - { from: research, to: report }
`;

test('runs: a sub-agent is started, waited for, listed in its tree and shown', async () => {
  await using session = await open();
  const { run } = session;
  expect(await run('runs')).toEqual({ code: 0, out: 'No runs.\n', err: '' });
  const spawned = await run('runs', 'start', 'Read the README', '--max-steps', '3', '--expect', 'A list');
  expect(spawned).toMatchObject({ code: 0, err: '' });
  const id = idIn(spawned.out, 'sr');
  const waited = await run('runs', 'wait', id, '--timeout', '20');
  expect(waited).toMatchObject({ code: 0, err: '', out: `${id}  completed\n\n  Tides\\u001b[31m come twice\n` });
  const { out } = await run('runs');
  expect(lineOf(out, 'root-rpc-')).toMatch(/ (active|completed) +default .*root-rpc-\S+$/);
  expect(lineOf(out, id)).toMatch(new RegExp(`^└─ Read the README +completed +default +.* ${id}$`));
  const shown = (await run('runs', 'show', id)).out;
  expect(shown).toMatch(/\nstate +completed\n[\s\S]*\nTask:\n {2}Read the README\n[\s\S]*Tides\\u001b\[31m come twice/);
  expect(JSON.parse((await run('runs', 'show', id, '--json')).out)).toMatchObject({
    runId: id,
    completion: { summary: 'Tides\u001b[31m come twice' },
  });
  expect(JSON.parse((await run('runs', '--json')).out)).toMatchObject({ runs: [{ runs: { completed: 1 } }], subAgents: [{ runId: id }] });
  expect((await run('runs', 'spawn', 'Again', '--wait')).out).toContain('  Tides');
  expect(await run('runs', 'show', 'sr_00000000-0000-7000-8000-000000000000')).toMatchObject({ code: 1, out: '' });
  expect(await run('runs', 'spawn', 'x', '--tell', 'nobody')).toMatchObject({ code: 2, out: '' });
});

test('runs: a hanging one is steered and killed, and its end has an exit code; new ones are paused and resumed', async () => {
  await using session = await open();
  const { run } = session;
  const first = idIn((await run('runs', 'spawn', 'WAIT for it')).out, 'sr');
  expect((await run('runs', 'wait', first, '--timeout', '0')).code).toBe(1);
  const steered = await run('runs', 'steer', first, 'WAIT for something else');
  expect(steered.out).toMatch(/^Stopped sr_\S+; it continues as sr_\S+\.\n$/);
  const second = /as (sr_\S+)\./.exec(steered.out)?.[1] ?? '';
  expect(lineOf((await run('runs', '--active')).out, second)).toContain('WAIT for something else');
  expect(await run('runs', 'kill', second)).toMatchObject({ code: 2, err: expect.stringContaining('--yes') });
  expect((await run('runs', 'kill', second, '-y')).out).toBe(`Killed ${second}.\n`);
  expect(await run('runs', 'wait', second)).toMatchObject({ code: 1, out: expect.stringContaining('killed') });
  const third = await run('runs', 'spawn', 'WAIT again', '--json');
  const { rootRunId } = JSON.parse(third.out) as { rootRunId: string };
  expect((await run('runs', 'kill', rootRunId, '-y')).out).toMatch(/^Killed \d+ runs\.\n$/);
  expect((await run('runs', 'pause')).out).toBe('New sub-agents are rejected.\n');
  expect(await run('runs', 'spawn', 'x')).toMatchObject({ code: 1, out: '' });
  expect((await run('runs', 'status')).out).toBe('New sub-agents are rejected.\n');
  expect((await run('runs', 'resume')).out).toBe('New sub-agents are accepted.\n');
});

test('runs: watching shows new runs and ends with Ctrl-C', async () => {
  await using session = await open();
  const { run, start } = session;
  const watch = start('runs', '--watch');
  await watch.out.seen('No runs.');
  const id = idIn((await run('runs', 'spawn', 'Read the README')).out, 'sr');
  await watch.out.seen(id);
  watch.interrupt();
  expect((await watch.ended).code).toBe(130);
});

test('graph: a file is checked, run and waited for; its run is listed, drawn, read and deleted', async () => {
  await using session = await open();
  const { run, file } = session;
  await file('report.yaml', report);
  const checked = await run('graph', 'validate', 'report.yaml');
  expect(checked).toMatchObject({ code: 0, err: '' });
  expect(checked.out).toMatch(/^Ready to run: 3 nodes, research, vote, report\.\nVariables: TOPIC\n/);
  const done = await run('graph', 'run', 'report.yaml', '--var', 'TOPIC=tides', '--watch');
  expect(done).toMatchObject({ code: 0, err: '' });
  const id = idIn(done.out, 'gr');
  expect(done.out).toMatch(/ {2}vote {2}completed\n[\s\S]*The graph is completed\.\n\nreport:\n {2}Tides\\u001b\[31m come twice\n$/);
  expect((await run('graph', 'runs')).out).toMatch(new RegExp(`\\nReport +completed +3 +3 +.* ${id}\\n`));
  expect((await run('graph', 'status')).out).toMatch(new RegExp(`\\nReport +completed[\\s\\S]* ${id}\\n\\d+ of \\d+ sub-agent slots in use`));
  const status = await run('graph', 'status', id);
  expect(status.out).toMatch(/\nstate +completed\n[\s\S]*\nvote +vote +completed /);
  expect((await run('graph', 'draw', id)).out.split('\n')).toEqual([
    '✓ research ─┐          ┌┬─ ✓ report',
    '            ├─ ✓ vote ─┘│',
    '            │           │',
    '            └───────────┘',
    '',
  ]);
  expect((await run('graph', 'draw', 'report.yaml')).out).toContain('research ─┐');
  expect((await run('graph', 'outputs', id, '--node', 'research')).out).toBe('research:\n  Tides\\u001b[31m come twice\n');
  expect(await run('graph', 'outputs', id, '--node', 'nothing')).toMatchObject({ code: 1, out: '' });
  expect((await run('graph', 'show', id)).out).toMatch(/^Report, completed, .*\n\nresearch:\n/);
  expect((await run('graph', 'delete', id, '-y')).out).toBe(`Deleted ${id}.\n`);
  expect((await run('graph', 'runs')).out).toBe('No runs.\n');
});

test('graph: an approval gate asks while watched, and continues with the answer', async () => {
  await using session = await open();
  const { run, start, file } = session;
  const nodes = [
    { node_id: 'gate', task: 'Shall it be written?', type_id: 'approval-gate', type_config: { timeout_minutes: 5 } },
    { node_id: 'write', task: 'Write it', agent: 'default', depends_on: ['gate'] },
  ];
  await file('ask.json', JSON.stringify({ nodes, label: 'Ask' }));
  const watch = start('graph', 'run', 'ask.json', '--watch');
  await watch.out.seen('gate yes');
  const id = idIn(watch.out.text(), 'gr');
  expect(watch.out.text()).toMatch(/gate {2}waiting for you: Shall it be written\?\n/);
  const { out } = await run('graph', 'status', id);
  expect(out).toMatch(/^state +waiting for you$/m);
  expect(out).toContain(`gate asks:\n  Shall it be written?\nAnswer with: gatehouse graph answer ${id} gate yes (or no)\n`);
  expect((await run('graph', 'status')).out).toMatch(/\nAsk +waiting for you /);
  expect((await run('graph', 'runs')).out).toMatch(/\nAsk +waiting for you /);
  expect(await run('graph', 'answer', id, 'gate', 'perhaps')).toMatchObject({ code: 1, out: '' });
  expect((await run('graph', 'answer', id, 'gate', 'yes')).out).toBe('gate is approved.\n');
  expect((await watch.ended).code).toBe(0);
  expect(watch.out.text()).toContain('The graph is completed.');
  expect((await run('graph', 'runs')).out).toMatch(/\nAsk +completed /);
});

test('graph: saved, run by its name, cancelled and deleted', async () => {
  await using session = await open();
  const { run, file } = session;
  expect(await run('graph')).toEqual({ code: 0, out: 'No saved graphs.\n', err: '' });
  await file('slow.yml', report.replace('Is it true?', 'WAIT for it').replace('Report', 'Slow one'));
  const saved = await run('graph', 'save', 'slow.yml');
  expect(saved.out).toMatch(/^Saved Slow one: sg_/);
  expect((await run('graph', 'list')).out).toMatch(/\nSlow one +3 /);
  const yaml = (await run('graph', 'show', 'Slow one')).out;
  expect(yaml).toMatch(/^label: Slow one\nnodes:\n {2}- node_id: research\n/);
  await file('again.yaml', yaml);
  expect((await run('graph', 'validate', 'again.yaml')).code).toBe(0);
  const id = idIn((await run('graph', 'run', 'Slow one', '--var', 'TOPIC=tides')).out, 'gr');
  await expect.poll(async () => (await run('graph', 'status', id)).out).toMatch(/vote +vote +running/);
  expect((await run('graph', 'delete', id, '-y')).code).toBe(1);
  expect((await run('graph', 'cancel', id)).out).toBe(`Cancelled ${id}; running nodes finish.\n`);
  expect((await run('graph', 'delete', 'Slow one', '-y')).out).toBe('Deleted Slow one.\n');
  expect(await run('graph', 'run', 'Slow one')).toMatchObject({ code: 2, out: '' });
});

test('graph: errors use node names, and a failed graph sets the exit code', async () => {
  await using session = await open();
  const { run, file } = session;
  await file('wrong.yaml', report.replace('voters: [default, default]', 'voters: [default]').replace('from: vote,', 'from: nothing,'));
  const wrong = await run('graph', 'validate', 'wrong.yaml');
  expect(wrong).toMatchObject({ code: 2, out: '' });
  expect(wrong.err).toContain('node vote, type_config.voters: ');
  expect(wrong.err).toContain('edges.0.from: missing_dependency: no node "nothing" exists');
  expect(JSON.parse((await run('graph', 'validate', 'wrong.yaml', '--json')).err)).toMatchObject({ error: { code: 'invalid_params' } });
  await file('broken.yaml', 'nodes: [');
  await file('other.json', '{"nodes": 1');
  await file('list.yaml', '- 1\n');
  for (const args of [
    ['validate', 'broken.yaml'],
    ['validate', 'other.json'],
    ['validate', 'list.yaml'],
    ['validate', 'absent.yaml'],
    ['run', 'wrong.yaml'],
    ['run', 'report.yaml', '--var', 'TOPIC'],
    ['run', 'report.yaml', '--tell', 'nobody'],
    ['save', 'wrong.yaml'],
  ])
    expect([args, (await run('graph', ...args)).code]).toEqual([args, 2]);
  await file('fails.yaml', report.replace('Is it true?', 'FAIL at it'));
  const failed = await run('graph', 'run', 'fails.yaml', '--var', 'TOPIC=tides', '--wait', '--json');
  expect(failed.code).toBe(1);
  expect(JSON.parse(failed.out)).toMatchObject({ status: 'failed', nodes: { vote: { status: 'failed' } } });
});
