import { createStepClock } from '@gatehouse/testkit';
import { describe, expect, test } from 'vitest';
import { McpServerConfig } from './config.ts';
import { createCallQueue } from './servers/call-queue.ts';
import { cleanLabel, cleanText } from './tools/clean-text.ts';
import { createErrorOutput } from './connection/error-output.ts';
import { createFloodGuard } from './connection/flood-guard.ts';
import { createSeal } from './servers/seal.ts';
import { buildTools } from './tools/tool-list.ts';
import { fitsPattern } from './tools/tool-names.ts';

describe('the list of tools', () => {
  const options = { server: 's', identity: 'node', readOnlyTools: [], timeoutMs: 1000, call: () => Promise.reject(new Error('not called')) };
  const declared = { name: 'a', description: 'Reads.', inputSchema: { type: 'object' } };
  const build = async (tool: object, more: object = {}) => (await buildTools([tool], { ...options, ...more }, [])).tools[0]!.tool;

  test('keeps what did not change as the same object', async () => {
    const first = await buildTools([declared, { ...declared, name: 'b' }], options, []);
    const second = await buildTools(
      [
        { ...declared, name: 'b' },
        { ...declared, description: 'Other.' },
      ],
      options,
      first.tools,
    );
    expect(second.tools[0]).toBe(first.tools[1]);
    expect(second.tools[1]).not.toBe(first.tools[0]);
  });

  test('has a fingerprint of everything that an approval covers', async () => {
    const built = await Promise.all([
      build(declared),
      build({ ...declared, name: 'b' }),
      build({ ...declared, description: 'Other.' }),
      // A person may have seen what a model is not shown.
      build({ ...declared, description: 'Reads.\u200b' }),
      build({ ...declared, description: 'Reads.'.padEnd(4000) }),
      build({ ...declared, description: 'Reads.'.padEnd(4001) }),
      build({ ...declared, inputSchema: { type: 'object', title: 'x' } }),
      build(declared, { server: 't' }),
      build(declared, { identity: 'python' }),
    ]);
    const all = built.map((tool) => tool.fingerprint);
    expect(new Set(all).size).toBe(all.length);
    expect((await build(declared)).fingerprint).toBe(all[0]);
  });

  test('attributes a description to its server, and treats a call as once and writing', async () => {
    expect(await build(declared)).toMatchObject({
      description: 'Tool of the MCP server "s", described by the server as: Reads.',
      source: 'mcp:s',
      risk: 'write',
      effect: 'once',
      readsPrivate: true,
    });
  });
});

test('the queue is in order and limited, and a caller that leaves frees its slot', async () => {
  const queue = createCallQueue('s', 1);
  const gate = Promise.withResolvers<void>();
  const order: number[] = [];
  const never = new AbortController().signal;
  const first = queue.run(never, () => gate.promise);
  const leaving = new AbortController();
  const left = queue.run(leaving.signal, async () => order.push(-1));
  const rest = Array.from({ length: 99 }, (_, index) => queue.run(never, async () => order.push(index)));
  await expect(queue.run(never, async () => {})).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('limit 100') });
  leaving.abort();
  await expect(left).rejects.toMatchObject({ code: 'cancelled' });
  await expect(queue.run(leaving.signal, async () => {})).rejects.toMatchObject({ code: 'cancelled' });
  gate.resolve();
  await Promise.all([first, ...rest]);
  expect(order).toEqual(Array.from({ length: 99 }, (_, index) => index));
  await expect(queue.run(never, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  await expect(queue.run(never, async () => 'free')).resolves.toBe('free');
});

test('what a server sends is counted over a minute', () => {
  const clock = createStepClock();
  const flood = createFloodGuard(clock);
  for (let index = 0; index < 20_000; index += 1) flood.message();
  expect(() => flood.message()).toThrow(/within a minute/);
  clock.advance(60_000);
  flood.bytes(64 * 1024 * 1024 - 1);
  expect(() => flood.bytes(2)).toThrow(/within a minute/);
  // What would still fit is refused too, of either kind, until the minute is over.
  expect(() => flood.bytes(1)).toThrow(/within a minute/);
  expect(() => flood.message()).toThrow(/within a minute/);
  clock.advance(60_000);
  flood.bytes(1);
});

test('keeps the end of error output', () => {
  const output = createErrorOutput();
  output.push('x'.repeat(1_000_000));
  for (let index = 0; index < 1000; index += 1) output.push(`line ${index}\n`.padStart(500));
  expect(output.text()).toHaveLength(65_536);
  expect(output.text()).toMatch(/line 999\n$/);
});

test('text is stripped of invisible characters, and otherwise unchanged', () => {
  expect(cleanText('a\u001b[1;31mb\u001b]0;title\u0007c\u200bd\u202ee m² ﬁn\n\t…')).toBe('abcde m² ﬁn\n\t…');
  expect(cleanLabel('ｆｕｌｌ', 10)).toBe('full');
  expect(cleanLabel('\ufdfa'.repeat(1000), 100)).toHaveLength(100);
});

test('patterns of names', () => {
  expect(['read_file', 'read', 'xread'].map((name) => fitsPattern(name, ['read*']))).toEqual([true, true, false]);
  expect(['a-b-c', 'a-c', 'a-b'].map((name) => fitsPattern(name, ['a*b*c']))).toEqual([true, false, false]);
  expect(fitsPattern('aa', ['a*a*a'])).toBe(false);
  expect(fitsPattern('anything', ['*'])).toBe(true);
  expect(fitsPattern('a.b', ['a_b'])).toBe(false);
});

test('sealed headers open under their own name and key alone', () => {
  const seal = createSeal(Buffer.alloc(32, 1));
  const sealed = seal.close('a', { authorization: 'x' });
  expect(seal.open('a', sealed)).toEqual({ authorization: 'x' });
  expect(seal.open('b', sealed)).toBeUndefined();
  expect(createSeal(Buffer.alloc(32, 2)).open('a', sealed)).toBeUndefined();
  expect(seal.open('a', '')).toBeUndefined();
});

test.each([
  [{ transport: 'stdio' }, 'command'],
  [{ transport: 'http' }, 'url'],
  [{ transport: 'http', url: 'http://a', command: 'b' }, 'command'],
  [{ transport: 'stdio', command: 'a', url: 'http://a' }, 'url'],
  [{ transport: 'http', url: 'http://u:p@a' }, 'url'],
  [{ transport: 'http', url: 'http://a', headers: { a: '$TOKEN' } }, 'headers'],
  [{ transport: 'stdio', command: 'a', env: { A: '$TOKEN' } }, 'env.A'],
  [{ transport: 'stdio', command: 'a', cwd: 'b' }, 'cwd'],
])('%j is not a valid configuration of a server', (config, path) => {
  expect(
    McpServerConfig()
      .safeParse(config)
      .error?.issues.map((issue) => issue.path.join('.')),
  ).toContain(path);
});
