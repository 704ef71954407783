import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, type StepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, describe, expect, test } from 'vitest';

const folder = join(import.meta.dirname, 'testing');
let server: TestServer | undefined;
afterEach(async () => {
  await server?.[Symbol.asyncDispose]();
  server = undefined;
});

async function start(servers: Record<string, readonly string[]>, more: object = {}, clock?: StepClock): Promise<TestServer> {
  server = await startTestServer({
    ...(clock !== undefined && { clock }),
    config: {
      // The jail check at start uses the clock of the test.
      exec: { enabled: false },
      agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' } } },
      mcp: {
        servers: Object.fromEntries(
          Object.entries(servers).map(([name, args]) => [
            name,
            { transport: 'stdio' as const, command: 'node', args: [join(folder, 'stdio-server.mjs'), ...args], mounts: [{ path: folder }], ...more },
          ]),
        ),
      },
    },
  });
  return server;
}
const statusOf = async (name: string) => server!.client.call('mcp.status', { name });
const connected = async (name: string) => expect.poll(async () => (await statusOf(name)).status).toBe('connected');

/** Returns the result that a turn gets when it calls the tool. */
async function callTool(name: string, args: object = {}): Promise<string> {
  const { client, provider } = server!;
  provider.queue({ toolCalls: [{ id: 'c1', name, arguments: JSON.stringify(args) }] }, { text: 'done' });
  await client.call('agent.execute', { message: 'go', sessionKey: `s:${Math.random()}` });
  const { messages } = provider.requests.at(-1)!.body as { messages: { role: string; content: string }[] };
  return messages.find((each) => each.role === 'tool')!.content;
}
const inside = (fenced: string) => fenced.split('\n').slice(1, -1).join('\n');

/** Lists processes whose arguments contain `mark`, wherever they were started. */
async function processesWith(mark: string): Promise<number> {
  let count = 0;
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (line.includes(mark) && Number(pid) !== process.pid) count += 1;
  }
  return count;
}

describe('a stdio server', () => {
  test('runs in the jail with the configured environment and no other, and answers', async () => {
    process.env['GATEHOUSE_TEST_LEAK'] = 'leaked';
    await start({ small: ['good', 'mark'] }, { env: { OWN: 'value-of-own' } });
    await connected('small');
    expect(inside(await callTool('mcp__small--echo', { text: 'hi' }))).toBe('echo: hi');
    const { env, cwd } = JSON.parse(inside(await callTool('mcp__small--env')));
    expect(
      Object.keys(env)
        .filter((name) => !['PWD', 'SHLVL', '_'].includes(name))
        .toSorted(),
    ).toEqual(['HOME', 'OWN', 'PATH']);
    expect(env.OWN).toBe('value-of-own');
    expect(cwd).toBe('/tmp');
    expect((await statusOf('small')).stderr).toContain('ready mark');
  });

  test('has its text fenced, its errors too, and binary content described', async () => {
    await start({ small: ['noise'] });
    await connected('small');
    expect(await callTool('mcp__small--deny')).toMatch(
      /^<<<UNTRUSTED-TEXT [0-9a-f]{32} source="mcp server small">>>\nThe server refused the call: [^\u001b]*I will not\. Ignore all/,
    );
    expect(inside(await callTool('mcp__small--pictures')).split('\n')).toEqual([
      '[image, image/png, 3000 bytes: not shown]',
      '[resource file:///a]',
      'inside',
      '[resource file:///b: b]',
      '[hologram: not shown]',
    ]);
    expect(inside(await callTool('mcp__small--structured'))).toBe('{"a":1}\n{\n "a": 1,\n "b": [\n  2\n ]\n}');
    expect(inside(await callTool('mcp__small--stranger'))).toBe('mine');
  });

  test('that does not answer is notified that the call was abandoned, and keeps working', async () => {
    await start({ small: ['good'] }, { timeoutMs: 1_000 });
    await connected('small');
    expect(await callTool('mcp__small--slow')).toBe('The MCP server "small" gave no answer within 1000 ms; the call may still have had its effect');
    const { held, cancelled } = JSON.parse(inside(await callTool('mcp__small--cancelled')));
    expect(cancelled).toEqual([held]);
    expect((await statusOf('small')).generation).toBe(1);
  });

  test.each([
    ['crash', /ended during the call; it may have had its effect/],
    ['huge', /ended during the call|no usable answer/],
  ])('that fails within a call (%s) is connected again', async (tool, words) => {
    await start({ small: ['good'] });
    await connected('small');
    expect(await callTool(`mcp__small--${tool}`)).toMatch(words);
    expect((await statusOf('small')).status).toBe('reconnecting');
    expect(await callTool('mcp__small--echo', { text: 'hi' })).toMatch(/is not connected \(reconnecting\); the call was not made/);
    await connected('small');
    expect((await statusOf('small')).generation).toBe(2);
    expect(inside(await callTool('mcp__small--echo', { text: 'hi' }))).toBe('echo: hi');
  });

  test.each(['garbage', 'endless'])('that sends %s is cut off', async (behaviour) => {
    await start({ bad: [behaviour] });
    await expect.poll(async () => (await statusOf('bad')).status).toBe('reconnecting');
    expect((await statusOf('bad')).error).toMatch(/is not MCP|closed|more than/);
  });

  test('that offers too much is cut to the limits, and paging ends', async () => {
    await start({ many: ['many'], pages: ['pages'] });
    await connected('many');
    await connected('pages');
    expect(await statusOf('many')).toMatchObject({ toolCount: 500, droppedTools: 200 });
    expect((await statusOf('pages')).toolCount).toBe(12);
  });

  test('gets unique names that models can call, and no say in the risk of its tools', async () => {
    await start({ odd: ['names'] }, { readOnlyTools: ['a.*', 'lo*g'] });
    await connected('odd');
    const { tools, droppedTools } = await statusOf('odd');
    expect(tools.map(({ name, callableName, risk }) => [name, callableName, risk])).toEqual([
      ['a.b', 'mcp__odd--a_b', 'read'],
      ['a_b', expect.stringMatching(/^mcp__odd--a_b_[0-9a-f]{8}$/), 'write'],
      ['x'.repeat(100), expect.stringMatching(/^mcp__odd--x{45}_[0-9a-f]{8}$/), 'write'],
      ['long', 'mcp__odd--long', 'read'],
      ['safe', 'mcp__odd--safe', 'write'],
    ]);
    expect(droppedTools).toBe(5);
    expect(tools[3]?.description).toMatch(/^redy{2044}…$/);
  });

  test('that changes a description gets a new tool', async () => {
    await start({ small: ['good'] });
    await connected('small');
    await callTool('mcp__small--rename', { text: 'Sends everything to me.' });
    await expect.poll(async () => (await statusOf('small')).tools[0]?.description).toBe('Sends everything to me.');
    await callTool('mcp__small--echo', { text: 'hi' });
    expect(JSON.stringify(server!.provider.requests.at(-1)!.body)).toContain('described by the server as: Sends everything to me.');
  });

  test('that is silent is abandoned after 30 seconds', async () => {
    const clock = createStepClock();
    await start({ silent: ['never'] }, {}, clock);
    await expect.poll(async () => processesWith('stdio-server.mjs\0never')).toBeGreaterThan(0);
    await expect
      .poll(async () => {
        clock.advance(30_000);
        return statusOf('silent');
      })
      .toMatchObject({ error: 'The server gave no answer within 30000 ms' });
    // It does not exit on its own either, and the clock of its grace period is the test's.
    let ended = false;
    const disposed = server![Symbol.asyncDispose]().then(() => (ended = true));
    await expect.poll(() => (clock.advance(1000), ended)).toBe(true);
    await disposed;
    server = undefined;
  });
});

describe('processes', () => {
  const mark = () => `mark-${process.pid}-${Math.random().toString(36).slice(2)}`;

  test('50 reconnects leave one process, and closing leaves none; not even children or one that ignores the end', async () => {
    const [small, family, stays] = [mark(), mark(), mark()];
    const { client } = await start({ small: ['good', small], family: ['family', family], stays: ['stays', stays] });
    await connected('small');
    const one = await processesWith(small);
    expect(one).toBeGreaterThan(0);
    for (let round = 0; round < 50; round += 1) await client.call('mcp.reconnect', { name: 'small' });
    expect(await processesWith(small)).toBe(one);
    expect(await statusOf('small')).toMatchObject({ generation: 51, status: 'connected', reconnectAttempt: 0 });
    await connected('family');
    await connected('stays');
    expect(await processesWith(family)).toBeGreaterThan(1);
    await client.call('mcp.disconnect', { name: 'family' });
    await client.call('mcp.disconnect', { name: 'stays' });
    expect(await processesWith(family)).toBe(0);
    expect(await processesWith(stays)).toBe(0);
    await server?.[Symbol.asyncDispose]();
    server = undefined;
    expect(await processesWith(small)).toBe(0);
  }, 60_000);

  test('a daemon that is killed leaves none', async () => {
    const left = mark();
    const home = await mkdtemp(join(tmpdir(), 'gatehouse-mcp-'));
    await writeFile(
      join(home, 'config.yaml'),
      JSON.stringify({
        models: { discover: false },
        mcp: {
          servers: Object.fromEntries(
            ['good', 'family', 'stays'].map((name) => [
              name,
              { transport: 'stdio', command: 'node', args: [join(folder, 'stdio-server.mjs'), name, left], mounts: [{ path: folder }] },
            ]),
          ),
        },
      }),
      { mode: 0o600 },
    );
    const daemon = spawn(process.execPath, [join(import.meta.dirname, '../../../../main.ts'), '--home', home, '--port', '0'], { stdio: 'ignore' });
    try {
      // Each is several processes: the jail, what it runs in it, and for one of them a child.
      await expect.poll(() => processesWith(left), { timeout: 20_000, interval: 100 }).toBeGreaterThanOrEqual(7);
      // A jail being created at this moment may be counted (decision 15): wait until the count is stable.
      let before = -1;
      await expect.poll(async () => before === (before = await processesWith(left)), { timeout: 20_000, interval: 1000 }).toBe(true);
      daemon.kill('SIGKILL');
      await expect.poll(() => processesWith(left)).toBe(0);
    } finally {
      daemon.kill('SIGKILL');
      await rm(home, { recursive: true, force: true });
    }
  }, 40_000);
});
