import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createStepClock, startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { createUser } from '../testing/test-io.ts';

/** Creates a user of a real server in this process, with the server's clock. */
async function open(options: Parameters<typeof startTestServer>[0] = {}) {
  const server = await startTestServer(options);
  const user = await createUser();
  return {
    server,
    user,
    run: (...args: string[]) => user.run({ args, env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token }, io: { now: () => Date.now() } }),
    say: (message: string, sessionKey = 'ada:desk') => server.client.call('agent.execute', { message, sessionKey }),
    async [Symbol.asyncDispose]() {
      await user[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

const cells = (out: string) =>
  out
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/));

test('sessions: search finds messages with their positions', async () => {
  await using session = await open();
  session.server.provider.queue({ text: 'The reindeer\u001b[31m lives in the Arctic' }, { text: 'No idea' });
  const { conversationRef } = await session.say('Where does the reindeer live?');
  await session.say('And penguins?', 'ada:web');
  const found = await session.run('sessions', 'search', 'reindeer', '--limit', '5');
  expect(found.code).toBe(0);
  expect(found.out).toContain(`ada:desk of default, message 1 (user)`);
  expect(found.out).toContain(conversationRef);
  expect(found.out).toContain('The reindeer\\u001b[31m lives in the Arctic');
  expect(found.out).not.toContain('ada:web');
  expect((await session.run('sessions', 'search', 'reindeer', '--scope', 'assistant')).out).not.toContain('message 1');
  expect((await session.run('sessions', 'search', 'giraffe')).out).toBe('No message contains all terms.\n');
  expect(JSON.parse((await session.run('sessions', 'search', 'reindeer', '--json')).out)).toMatchObject({ mode: 'search', total: 2 });
  expect(await session.run('sessions', 'search', ' ')).toMatchObject({ code: 2, out: '' });
  expect(await session.run('sessions', 'search', 'reindeer', '--scope', 'nobody')).toMatchObject({ code: 2, err: expect.stringContaining('scope') });
});

test('sessions: fork, reset and erase report what they did', async () => {
  await using session = await open();
  await session.say('First');
  await session.say('Second');
  const forked = await session.run('sessions', 'fork', 'ada:desk', '--at', '2', '--key', 'ada:fork');
  expect(forked.out).toMatch(/^Created ada:fork with 2 messages: cv_/);
  expect((await session.run('sessions', 'show', 'ada:fork')).out).toContain('First');
  expect(await session.run('sessions', 'fork', 'ada:desk', '--key', 'ada:fork')).toMatchObject({ code: 1, out: '' });
  expect((await session.run('sessions', 'reset', 'ada:desk')).out).toBe('Reset ada:desk of default: the agent no longer sees 4 messages.\n');
  const inside = await session.run('context', 'ada:desk');
  expect(inside.out).toMatch(/^ada:desk of default, 4 messages, 0 summaries; reset after message 4\n/);
  expect(inside.out).not.toContain('in full');
  expect(await session.run('sessions', 'erase', 'ada:desk', '--derived', '-y')).toMatchObject({ code: 2, err: expect.stringContaining('--memory') });
  expect(await session.run('sessions', 'erase', 'ada:desk')).toMatchObject({ code: 2, err: expect.stringContaining('--yes') });
  const erased = await session.run('sessions', 'erase', 'ada:desk', '--memory', '--derived', '-y');
  expect(erased.out).toBe('Erased 4 messages, 0 summaries, 0 memories, 0 derived memories.\n');
  expect(JSON.parse((await session.run('sessions', 'erase', 'ada:desk', '-y', '--json')).out)).toMatchObject({ messagesDeleted: 0 });
});

test('sessions compact and context: summaries are shown as a tree', async () => {
  await using session = await open();
  expect((await session.run('context', 'cv_' + 'x'.repeat(43))).code).toBe(1);
  for (let at = 0; at < 12; at++) await session.say(`Part ${at} of the plan: ${'move the build machine '.repeat(12)}`);
  const before = await session.run('context', 'ada:desk');
  expect(before.out).toContain('* messages 1–24, in full');
  const compacted = await session.run('sessions', 'compact', 'ada:desk', '--instructions', 'Keep the names.');
  expect(compacted.out).toMatch(/^Compacted ada:desk: the model reads \d+ tokens instead of \d+; /);
  const { out } = await session.run('context', 'ada:desk');
  expect(out).toMatch(/^ada:desk of default, 24 messages, [1-9]\d* summaries\n\n\* messages 1–\d+, (leaf|condensed 1), \d+ tokens/);
  expect(JSON.parse((await session.run('context', 'ada:desk', '--json')).out)).toMatchObject({ messageCount: 24 });
});

test('memory: store, search, browse, show, export, stats and delete', async () => {
  await using session = await open();
  expect((await session.run('memory')).out).toBe('No memories.\n');
  const stored = await session.run('memory', 'store', 'The backup runs at four in the morning', '--tag', 'ops', '--type', 'procedural');
  const id = stored.out.trim();
  expect(stored).toMatchObject({ code: 0, err: '', out: expect.stringMatching(/^[0-9a-f-]{36}\n$/) });
  const piped = await session.user.run({
    args: ['memory', 'store', '--external', '--pin'],
    env: { GATEHOUSE_URL: session.server.url, GATEHOUSE_TOKEN: session.server.token },
    input: 'Line one\nline  two\n',
  });
  const second = piped.out.trim();
  const found = cells((await session.run('memory', 'search', 'when is the backup')).out);
  expect(found[0]).toEqual(['SCORE', 'TERMS', 'MEANING', 'TRUST', 'ID', 'CONTENT']);
  expect(found[1]).toMatchObject([
    expect.stringMatching(/^[01]\.\d\d$/),
    '#1',
    expect.any(String),
    'learned',
    id,
    'The backup runs at four in the morning',
  ]);
  const rows = cells((await session.run('memory', 'browse', '--limit', '1')).out);
  expect(rows[0]).toEqual(['ID', 'TYPE', 'TRUST', 'TAGS', 'STORED', 'CONTENT']);
  expect(rows[1]).toMatchObject([second, 'semantic', 'external', expect.any(String), expect.stringContaining('UTC'), 'Line one\\nline', 'two']);
  expect(rows[2]).toEqual(['1 to 1 of 2']);
  expect(cells((await session.run('memory', 'browse', '--tag', 'ops', '--type', 'procedural', '--trust', 'learned')).out)).toHaveLength(2);
  expect((await session.run('memory', 'browse', '--tag', 'none')).out).toBe('No memories.\n');
  const shown = await session.run('memory', 'show', second);
  expect(shown.out).toMatch(/owner +everyone\n/);
  expect(shown.out).toMatch(/\n\n {2}Line one\n {2}line {2}two\n$/);
  expect(await session.run('memory', 'show', '00000000-0000-4000-8000-000000000000')).toMatchObject({ code: 2, out: '' });
  expect((await session.run('memory', 'stats')).out).toMatch(/^memories +2\n[\s\S]*type procedural +1\n/);
  expect((await session.run('memory', 'export', '--file', 'memory.json')).out).toContain('Wrote 2 memories');
  const file: { entries: { id: string }[] } = JSON.parse(await readFile(join(session.user.dir, 'memory.json'), 'utf8'));
  expect(file.entries.map((entry) => entry.id)).toEqual([id, second]);
  expect(await session.run('memory', 'delete', id)).toMatchObject({ code: 2, err: expect.stringContaining('--yes') });
  expect((await session.run('memory', 'delete', id, '00000000-0000-4000-8000-000000000000', '-y')).out).toBe('Deleted 1 memories; 1 not found.\n');
  expect(await session.run('memory', 'flush', '-y')).toMatchObject({ code: 2, err: expect.stringContaining('--agent') });
  expect((await session.run('memory', 'flush', '--agent', 'default', '-y')).out).toBe('Flushed 1 memories of default.\n');
});

test('knowledge: list, search, read and refresh', async () => {
  await using session = await open();
  expect((await session.run('knowledge')).out).toBe('No sources.\n');
  const folder = join(session.user.dir, 'handbook');
  await mkdir(folder);
  await writeFile(join(folder, 'tea.md'), '# Tea\n\nThe kettle is descaled on Fridays.\n');
  await session.server.client.call('agents.update', { agentId: 'default', config: { knowledge: { sources: [{ name: 'handbook', folder }] } } });
  expect((await session.run('knowledge', 'refresh', 'default', 'handbook')).out).toBe('Started.\n');
  await expect
    .poll(async () => (await session.run('knowledge', 'search', 'kettle', 'descaled')).out, { timeout: 20_000 })
    .toContain('tea.md, Tea  (kf_');
  const [file = ''] = /kf_[0-9a-f]{32}/.exec((await session.run('knowledge', 'search', 'kettle', 'descaled')).out) ?? [];
  expect((await session.run('knowledge', 'read', file, '1')).out).toContain('descaled on Fridays');
  expect(cells((await session.run('knowledge', 'list')).out)[1]?.slice(0, 5)).toEqual(['default', 'handbook', 'ready', '1', '1']);
});

test('memory: review and lifecycle report what they did, and ask before sweeping', async () => {
  // At midday: a job sweeps every night.
  const clock = createStepClock();
  await using session = await open({ clock });
  expect((await session.run('memory', 'review')).out).toMatch(/^Reviewed 0 conversations of default\.\nFound 0: /);
  const expired = await session.server.client.call('memory.store', { content: 'Gone soon', expiresAt: clock.now() + 3_600_000 });
  clock.advance(2 * 3_600_000);
  const plan = await session.run('memory', 'lifecycle', '--dry-run');
  expect(plan.out).toMatch(new RegExp(`evict +${expired.id} +expired`));
  expect(plan.out).toMatch(/1 evicted\. Nothing was changed\.\n$/);
  expect(await session.run('memory', 'lifecycle')).toMatchObject({ code: 2, err: expect.stringContaining('--yes') });
  const swept = 'Swept 1 memories of default: 0 promoted, 0 demoted, 1 evicted.\n';
  expect(await session.run('memory', 'lifecycle', '-y')).toMatchObject({ code: 0, err: '', out: swept });
});

test('usage: totals by any two keys, with bars; unknown prices are reported', async () => {
  await using session = await open();
  expect((await session.run('usage')).out).toBe('No model calls in this period.\n');
  await session.say('One');
  await session.say('Two');
  const rows = cells((await session.run('usage', '--by', 'agent,model')).out);
  expect(rows[0]?.slice(0, 7)).toEqual(['AGENT', 'MODEL', 'CALLS', 'INPUT', 'CACHED', 'OUTPUT', 'COST']);
  expect(rows[1]?.slice(0, 3)).toEqual(['default', 'mock/mock-fast', '2']);
  expect(rows[1]?.at(-1)).toBe('█'.repeat(24));
  expect(rows[2]?.[0]).toBe('total');
  const report: { rows: { keys: string[] }[]; totals: { calls: number } } = JSON.parse(
    (await session.run('usage', '--by', 'conversation', '--json')).out,
  );
  expect([report.rows[0]?.keys[0]?.slice(0, 3), report.totals.calls]).toEqual(['cv_', 2]);
  for (const args of [
    ['--by', 'colour'],
    ['--by', 'day,agent,model'],
    ['--by', 'day,day'],
    ['--last', '5 weeks'],
    ['--time-zone', 'Nowhere/None'],
  ])
    expect([args, (await session.run('usage', ...args)).code]).toEqual([args, 2]);
});
