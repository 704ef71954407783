import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createStepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeEach, beforeAll, expect, test } from 'vitest';
import { calls, createCountingTools, done } from '../testing/tools.ts';

let server: TestServer;
const counting = createCountingTools();
const answers = new Map<string, ReturnType<typeof calls>[]>();
const inside = (name: string) => join(server.homeDir, 'workspaces/default', name);

beforeAll(async () => {
  server = await startTestServer({
    clock: createStepClock(),
    tools: counting.tools,
    config: {
      agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' }, maxConcurrentRuns: 16 } },
      approvals: { approvalCacheMs: 0, rules: [{ tools: ['exec', 'process', 'orchestrate', 'change'], action: 'ask' }] },
    },
  });
  server.provider.setAnswer(({ body }) => answers.get(/script-\S+?-end/g.exec(JSON.stringify(body))?.[0] ?? '')?.shift() ?? done);
});
afterAll(() => server[Symbol.asyncDispose]());

const swap = (name: string, text: string) => {
  rmSync(inside(name), { force: true });
  writeFileSync(inside(name), text, { mode: 0o755 });
};

beforeEach(() => {
  rmSync(inside('.'), { recursive: true, force: true });
  for (const folder of ['data', 'projects', 'documents']) mkdirSync(inside(folder), { recursive: true });
  writeFileSync(inside('data/run.sh'), 'echo GOOD-RAN\n', { mode: 0o755 });
});

let scripts = 0;
/** Returns the results of these calls, which all wait for approval while something happens, and are all approved then. */
async function approved(wanted: readonly (readonly [tool: string, args: object])[], meanwhile: () => void): Promise<string[]> {
  const turns = wanted.map((call) => {
    const script = `script-${(scripts += 1)}-end`;
    answers.set(script, [calls(call)]);
    return server.client.call('agent.execute', { message: script, sessionKey: `ops:${script}` });
  });
  await expect.poll(async () => (await server.client.call('admin.approval.pending', {})).requests.length).toBe(wanted.length);
  meanwhile();
  await server.client.call('admin.approval.resolveAll', { approved: true });
  const refs = (await Promise.all(turns)).map(({ conversationRef }) => conversationRef);
  const histories = await Promise.all(refs.map((conversationRef) => server.client.call('session.history', { conversationRef })));
  return histories.map(({ messages }) =>
    messages
      .filter(({ role }) => role === 'tool')
      .map(({ content }) => content)
      .join('\n'),
  );
}

const spellings: Readonly<Record<string, object>> = {
  link: { argv: ['sh', 'data/link.sh'] },
  'linked folder': { argv: ['sh', 'projects/d/run.sh'] },
  dots: { argv: ['sh', 'data/../data/run.sh'] },
  cd: { argv: ['sh', '-c', 'cd data && sh run.sh'] },
  variable: { argv: ['sh', '-c', 'D=data; sh $D/run.sh'] },
  path: { argv: ['sh', '-c', 'PATH=/workspace/data:$PATH run.sh'] },
};

test('a program is approved with the workspace as it is, however the call spells what it runs', async () => {
  symlinkSync('run.sh', inside('data/link.sh'));
  symlinkSync('../data', inside('projects/d'));
  const wanted = Object.values(spellings).map((args) => ['exec', args] as const);
  const script = ['orchestrate', { language: 'py', script: 'import os; os.system("sh data/run.sh")' }] as const;
  for (const result of await approved([...wanted, script], () => swap('data/run.sh', 'echo EVIL-RAN\n')))
    expect(result).toMatch(/a file of the workspace, which .* was changed while the call waited for its approval/);
});

test('a program runs when nothing it can read was changed', async () => {
  const same = () => {
    swap('data/run.sh', 'echo GOOD-RAN\n');
    mkdirSync(inside('.gatehouse'), { recursive: true });
    writeFileSync(inside('.gatehouse/x'), 'nobody sees it');
  };
  expect(await approved([['exec', { argv: ['sh', '-c', 'cd data; sh ./run.sh'] }]], same)).toEqual([expect.stringContaining('GOOD-RAN')]);
});

test('a workspace that cannot be compared is reported as such', async () => {
  const script = `script-${(scripts += 1)}-end`;
  answers.set(script, [calls(['exec', { argv: ['mkfifo', 'data/pipe'] }]), calls(['exec', { argv: ['sh', 'data/pipe'] }])]);
  const turn = server.client.call('agent.execute', { message: script, sessionKey: `ops:${script}` });
  await expect.poll(async () => (await server.client.call('admin.approval.pending', {})).requests.length).toBe(1);
  await server.client.call('admin.approval.resolveAll', { approved: true });
  const { conversationRef } = await turn;
  const { messages } = await server.client.call('session.history', { conversationRef });
  expect(messages.findLast(({ role }) => role === 'tool')?.content).toContain('"data/pipe" is a pipe or a device');
});

test('any other call is bound only to the files that it names, in whatever spelling', async () => {
  symlinkSync('../data', inside('projects/d'));
  const named = ['data/run.sh', 'data/./x/../run.sh', 'projects/d/run.sh', '/workspace//data/run.sh'].map((file) => ['change', { file }] as const);
  mkdirSync(inside('data/x'));
  const before = counting.count('change');
  const results = await approved([...named, ['change', { file: 'documents' }]], () => swap('data/run.sh', 'echo EVIL-RAN\n'));
  for (const result of results.slice(0, -1)) expect(result).toContain('was changed while the call waited for its approval');
  expect(counting.count('change')).toBe(before + 1);
});
