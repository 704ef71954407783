import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { findCommand } from '../../../../../../tools/system-packages.mjs';

const hasJail = findCommand('bwrap') !== undefined && findCommand('prlimit') !== undefined;
const longMs = 60_000;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    config: {
      agents: {
        default: { model: 'mock/mock-fast', tools: { profile: 'full' } },
        outer: { model: 'mock/mock-fast', tools: { profile: 'full' }, originTools: { v1: ['orchestrate'] } },
        careful: { model: 'mock/mock-fast', tools: { profile: 'full', deny: ['read', 'web_fetch'] } },
        plain: { model: 'mock/mock-fast', tools: { profile: 'full' }, autonomy: { profile: 'assistant' } },
        trusted: { model: 'mock/mock-fast', tools: { profile: 'full' }, autonomy: { adminTrust: true } },
      },
    },
  });
  mkdirSync(workspace(), { recursive: true });
});
afterAll(() => server[Symbol.asyncDispose]());

const Asked = z.object({ messages: z.array(z.object({ role: z.string(), content: z.string().catch('') })), tools: z.unknown() });
const workspace = (agentId = 'default') => join(server.homeDir, 'workspaces', agentId);

let runs = 0;
/** Lets the agent run a script; returns the tool result. */
async function run(script: string, args: Record<string, unknown> = {}, agentId = 'default'): Promise<string> {
  server.provider.setAnswer(({ body }) => {
    const last = Asked.parse(body).messages.at(-1);
    if (last?.role !== 'user') return { text: 'Done.' };
    return { toolCalls: [{ id: 'c1', name: 'orchestrate', arguments: JSON.stringify({ script, ...args }) }] };
  });
  const { conversationRef } = await server.client.call('agent.execute', {
    message: 'run it',
    agentId,
    // The output of an earlier script is text from outside, after which the next one would wait for an approval.
    sessionKey: { userId: 'ada', channelId: `run-${(runs += 1)}` },
  });
  const { messages } = await server.client.call('session.history', { conversationRef, limit: 200 });
  return messages.findLast(({ role }) => role === 'tool')?.content ?? '(nothing was run)';
}

/** Sends a line to the socket from outside the jail. */
async function say(line: unknown): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect(join(server.homeDir, 'capability.sock'));
  let text = '';
  socket.setEncoding('utf8').on('data', (part: string) => (text += part));
  socket.on('error', reject).on('close', () => resolve(text));
  socket.write(typeof line === 'string' ? line : `${JSON.stringify(line)}\n`);
  return z
    .object({ result: z.unknown().optional(), error: z.object({ code: z.string(), message: z.string() }).optional() })
    .parse(JSON.parse(await promise));
}

describe.skipIf(!hasJail)('a script', () => {
  test('calls tools in TypeScript, JavaScript and Python; returns only its output, fenced', { timeout: longMs }, async () => {
    writeFileSync(join(workspace(), 'notes.txt'), 'alpha\nbeta\n');
    const summaries = server.heard('orchestrate:run_summary');
    const audited = server.heard('capability:audited');
    const typed =
      'const { text }: { text: string } = await tools.call("read", { path: "notes.txt" }); console.log(text.includes("beta"), text.length > 3);';
    expect(await run(typed)).toMatch(/^<<<UNTRUSTED-TEXT [0-9a-f]{32} provenance="clean" source="script">>>\n\[ok, \d+\.\d s\]\ntrue true\n/);
    expect(await run('console.log((await tools.call("ls")).text.includes("notes.txt"))', { language: 'js' })).toContain('\ntrue\n');
    expect(await run('print("beta" in tools.call("read", {"path": "notes.txt"})["text"])', { language: 'py' })).toContain('\nTrue\n');
    expect(await run('await tools.call("ls"); console.log("secret words")', { captureStdout: false })).toContain('(no output)');
    expect(summaries[0]).toMatchObject({
      agentId: 'default',
      outcome: 'ok',
      exitCode: 0,
      toolCalls: [{ tool: 'read', capability: 'orch:read', decision: 'allow', count: 1 }],
    });
    const [found] = (await server.client.call('obs.trace.search', { where: 'tool = orchestrate', limit: 1 })).rows;
    const { orchestrate } = await server.client.call('obs.explain', { traceId: found?.traceId ?? '' });
    expect(orchestrate).toMatchObject([
      {
        runId: expect.stringMatching(/^sc_/),
        outcome: 'success',
        exitCode: 0,
        toolCalls: [{ tool: 'ls', decision: 'allow', count: 1 }],
        savings: {},
      },
    ]);
    expect(audited.find(({ tool }) => tool === 'read')).toMatchObject({
      decision: 'allow',
      method: 'tool.invoke',
      capability: 'orch:read',
      agentId: 'default',
    });
    expect(JSON.stringify(audited)).not.toContain('notes.txt');
  });

  test('is recorded without a name that may contain text that it has read', { timeout: longMs }, async () => {
    writeFileSync(join(workspace(), 'found.txt'), 'words-that-were-read');
    const [audited, summaries] = [server.heard('capability:audited'), server.heard('orchestrate:run_summary')];
    const shown = await run(
      'import { readFileSync } from "node:fs"; const words = readFileSync("found.txt", "utf8"); for (const call of [tools.call, tools.method]) console.log(await call(words).catch((e) => e.message))',
    );
    expect(shown.match(/Capability denied: none exists for "words-that-were-read"/g)).toHaveLength(2);
    expect(audited.filter(({ decision }) => decision === 'deny')).toMatchObject([
      { method: 'tool.invoke', tool: '(unknown)' },
      { method: '(unknown)' },
    ]);
    expect(summaries[0]?.toolCalls).toEqual([{ tool: '(unknown)', capability: null, decision: 'deny', count: 2 }]);
    expect(JSON.stringify([audited, summaries])).not.toContain('words-that-were-read');
  });

  test('fails by timeout, output or exit code, and reports its standard error', { timeout: longMs }, async () => {
    const summaries = server.heard('orchestrate:run_summary');
    expect(await run('await new Promise(() => setInterval(() => {}, 1000))', { timeoutMs: 1000 })).toContain('[timeout: ');
    expect(await run('for (;;) await new Promise((resolve) => process.stdout.write("x".repeat(10000), resolve))')).toContain('[stdout_cap: ');
    const failed = await run('console.log("so far"); throw new Error("no good")');
    expect(failed).toMatch(/\[nonzero_exit: it ended with an error \(exit code 1\)/);
    expect(failed).toMatch(/so far[\s\S]*no good/);
    expect(summaries.map(({ failureClass }) => failureClass)).toEqual(['timeout', 'stdout_cap', 'nonzero_exit']);
  });

  test('reaches neither the network nor files of the host, and sees only its lease', { timeout: longMs }, async () => {
    let connections = 0;
    const listener = createServer(() => (connections += 1)).listen(0, '127.0.0.1');
    await new Promise((resolve) => listener.once('listening', resolve));
    const { port } = z.object({ port: z.number() }).parse(listener.address());
    const output = await run(`
      import { connect } from 'node:net';
      import { readFileSync, writeFileSync, existsSync } from 'node:fs';
      console.log('env', Object.keys(process.env).sort().join());
      const failed = async (work) => { try { await work(); return 'REACHED'; } catch (error) { return error.code ?? error.message; } };
      console.log('net', await failed(() => new Promise((resolve, reject) => connect(${port}, '127.0.0.1', resolve).on('error', reject))));
      for (const path of [${JSON.stringify(join(server.homeDir, 'install.key'))}, ${JSON.stringify(join(server.homeDir, 'data'))}, '/etc/shadow', '/root/.ssh'])
        console.log('file', await failed(() => readFileSync(path)));
      for (const path of ['/workspace/SOUL.md', '/workspace/skills/x', '/run/gatehouse/x', '/usr/x'])
        console.log('write', await failed(() => writeFileSync(path, 'x')));
      console.log('sockets', existsSync('/run/gatehouse/gatehouse.sock'));
    `);
    listener.close();
    expect(output).toContain('env GATEHOUSE_CAP_LEASE,GATEHOUSE_ORCH_SOCKET,HOME,PATH,PWD\n');
    expect(output).not.toContain('REACHED');
    expect(output.match(/^(net|file|write) \S+/gm)).toHaveLength(9);
    expect(output).toContain('sockets false');
    expect(connections).toBe(0);
  });

  test('gets no other method or tool from the socket, regardless of its claims', { timeout: longMs }, async () => {
    const audited = server.heard('capability:audited');
    const output = await run(`
      const outcome = async (work) => { try { return 'ANSWERED ' + JSON.stringify(await work()); } catch (error) { return error.code + ': ' + error.message; } };
      for (const method of ['config.read', 'tokens.create', 'session.delete', 'session.history', 'agent.execute', 'no.such', 'approval.resolve'])
        console.log(method, await outcome(() => tools.method(method, {})));
      for (const name of ['exec', 'orchestrate', 'sessions_send', 'memory_store', 'write', 'mcp__x__y', 'sudo'])
        console.log(name, await outcome(() => tools.call(name, {})));
      console.log('foreign', await outcome(() => tools.method('session.list', { _agentId: 'careful', _principalId: 'token:else' })));
      console.log('badargs', await outcome(() => tools.call('read', { path: 5 })));
      console.log('own', (await tools.method('session.status')).agentName);
      console.log('introspect', Object.keys(await tools.method('capabilities.introspect')).join());
    `);
    const line = (name: string) => output.split('\n').find((each) => each.startsWith(`${name} `)) ?? '';
    for (const name of ['config.read', 'tokens.create', 'session.delete', 'approval.resolve'])
      expect(line(name)).toContain('never available to scripts');
    for (const name of ['session.history', 'agent.execute', 'no.such', 'sudo']) expect(line(name)).toContain('denied: Capability denied');
    for (const name of ['exec', 'orchestrate', 'sessions_send', 'memory_store', 'write', 'mcp__x__y']) expect(line(name)).toContain('is never');
    expect(line('foreign')).toContain('ANSWERED');
    expect(line('badargs')).toContain('path');
    expect(line('own')).toBe('own Gate');
    expect(line('introspect')).toContain('agentId');
    expect(audited.filter(({ decision, reason }) => decision === 'deny' && reason !== 'rate')).toHaveLength(14);
  });

  test('stops only runs of its principal, and only with the grant adminTrust', { timeout: longMs }, async () => {
    const ada = await server.as(['rpc']);
    const asked = server.provider.requests.length;
    server.provider.queue({ hang: true }, { hang: true });
    const own = await server.client.call('session.spawn', { task: 'Wait' });
    const foreign = await ada.call('session.spawn', { task: 'Wait' });
    await expect.poll(() => server.provider.requests.length).toBe(asked + 2);
    const stopping = (rootRunIds: readonly string[]) => `
      for (const rootRunId of ${JSON.stringify(rootRunIds)})
        for (const method of ['autonomy.evict', 'run.kill', 'lease.revoke'])
          console.log(method, await tools.method(method, { rootRunId }).then(JSON.stringify, (error) => error.code + ': ' + error.message));`;
    const refused = await run(stopping([own.rootRunId]));
    expect(refused.match(/never available to scripts/g)).toHaveLength(3);
    const done = await run(stopping([foreign.rootRunId, own.rootRunId]), {}, 'trusted');
    expect(done.match(/^(?:autonomy|run|lease).*$/gm)).toEqual([
      expect.stringContaining('Run not found'),
      expect.stringContaining('Run not found'),
      'lease.revoke {"revoked":0}',
      'autonomy.evict {"evicted":true}',
      'run.kill {"killed":2}',
      'lease.revoke {"revoked":0}',
    ]);
    expect(await ada.call('session.run_status', { runId: foreign.runId })).toMatchObject({ status: 'running' });
    await ada.call('subagent.kill', { target: foreign.runId });
  });

  test('is rate-limited for refused calls, too', { timeout: longMs }, async () => {
    const audited = server.heard('capability:audited');
    const output = await run(`
      const begun = performance.now();
      for (let n = 0; n < 15; n += 1) await tools.call('exec').catch(() => {});
      console.log('paced', performance.now() - begun > 900);
    `);
    expect(output).toContain('paced true');
    expect(audited.map(({ reason }) => reason).filter((reason) => reason === 'denylist')).toHaveLength(15);
    // One for each call that had to wait, regardless of its retries.
    expect(audited.filter(({ reason }) => reason === 'rate').length).toBeLessThanOrEqual(5);
  });

  test('has no more authority than its agent, and an agent without the capability runs no scripts', { timeout: longMs }, async () => {
    const output = await run(
      `for (const name of ['read', 'web_fetch', 'ls']) try { await tools.call(name, name === 'ls' ? {} : { path: 'x', url: 'http://a.example' }); console.log(name, 'RAN'); } catch (error) { console.log(name, error.message); }`,
      {},
      'careful',
    );
    expect(output).toMatch(/read (There is no tool|The tool "read" is not allowed)/);
    expect(output).toMatch(/web_fetch (There is no tool|The tool "web_fetch" is not allowed)/);
    expect(output).toContain('ls RAN');
    expect(await run('console.log("ran")', {}, 'plain')).toContain('Capability denied: orch:analyze');
  });

  test('has the authority of the origin of its turn, and the rate limits of the guards', { timeout: longMs }, async () => {
    const audited = server.heard('capability:audited');
    const calls = `for (const [name, args] of [['web_fetch', { url: 'http://a.example' }], ['ls', {}]])
      try { await tools.call(name, args); console.log(name, 'RAN'); } catch (error) { console.log(name, error.message); }
      const begun = performance.now();
      await Promise.all(Array.from({ length: 15 }, () => tools.call('ls')));
      console.log('paced', performance.now() - begun > 900);`;
    server.provider.setAnswer(({ body }) =>
      Asked.parse(body).messages.at(-1)?.role === 'user'
        ? { toolCalls: [{ id: 'c1', name: 'orchestrate', arguments: JSON.stringify({ script: calls }) }] }
        : { text: 'Done.' },
    );
    const response = await fetch(`${server.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'agent/outer', messages: [{ role: 'user', content: 'run it' }] }),
    });
    expect(response.status).toBe(200);
    const output = Asked.parse(server.provider.requests.at(-1)?.body).messages.at(-1)?.content;
    expect(output).toContain('web_fetch The tool "web_fetch" is not allowed here');
    expect(output).toContain('ls RAN');
    expect(output).toContain('paced true');
    const refused = audited.filter(({ decision }) => decision === 'deny').map(({ reason }) => reason);
    expect(new Set(refused)).toEqual(new Set(['origin', 'rate']));
  });

  test('finds a long result in a workspace file, which it can read in parts', { timeout: longMs }, async () => {
    writeFileSync(join(workspace(), 'long.txt'), Array.from({ length: 1900 }, (_, index) => `line ${index} ${'x'.repeat(20)}`).join('\n'));
    const summaries = server.heard('orchestrate:run_summary');
    const output = await run(`
      import { readFileSync } from 'node:fs';
      const { text, ref } = await tools.call('read', { path: 'long.txt', limit: 2000 });
      console.log(text.length, ref.kind, ref.path.startsWith('/workspace/output/scripts/ls_'), readFileSync(ref.path, 'utf8').includes('line 900 '));
    `);
    expect(output).toContain('\n2000 text true true\n');
    expect(summaries[0]).toMatchObject({ resultRefs: { count: 1 } });
    expect(summaries[0]?.savings.estSavedTokens).toBeGreaterThan(5000);
    expect(summaries[0]?.savings.savedRatio).toBeGreaterThan(0.9);
  });

  test('gets a separate file for each of several concurrent long results', { timeout: longMs }, async () => {
    for (const name of ['one', 'two', 'three']) writeFileSync(join(workspace(), `${name}.txt`), `${name} ${'x'.repeat(30)}\n`.repeat(1900));
    const output = await run(`
      import { readFileSync } from 'node:fs';
      const names = ['one', 'two', 'three'];
      const calls = names.flatMap((path) => [tools.call('read', { path: path + '.txt', limit: 2000 }), tools.call('ls')]);
      const refs = (await Promise.all(calls)).flatMap(({ ref }) => (ref === undefined ? [] : [ref.path]));
      console.log(new Set(refs).size, refs.every((path, index) => readFileSync(path, 'utf8').includes(names[index] + ' x')));
    `);
    expect(output).toContain('\n3 true\n');
  });

  test('cannot make the daemon write its results elsewhere', { timeout: longMs }, async () => {
    const elsewhere = join(server.homeDir, 'elsewhere');
    mkdirSync(elsewhere);
    writeFileSync(join(workspace(), 'long.txt'), 'many terms in a long repeated line\n'.repeat(4000));
    const output = await run(`
      import { rmSync, symlinkSync, existsSync } from 'node:fs';
      if (existsSync('/workspace/output/scripts')) rmSync('/workspace/output/scripts', { recursive: true });
      symlinkSync(${JSON.stringify(elsewhere)}, '/workspace/output/scripts');
      try { console.log('REF', (await tools.call('read', { path: 'long.txt', limit: 2000 })).ref?.path); } catch (error) { console.log('refused', error.code); }
      rmSync('/workspace/output/scripts');
    `);
    expect(output).toContain('\nrefused not_found\n');
    expect(readdirSync(elsewhere)).toEqual([]);
  });

  test('leaves a bearer that is invalid after its end, like an unknown one', { timeout: longMs }, async () => {
    const audited = server.heard('capability:audited');
    const output = await run('console.log(process.env.GATEHOUSE_CAP_LEASE)');
    const bearer = /\n([\w-]{43})\n/.exec(output)?.[1] ?? 'none';
    expect(bearer).not.toBe('none');
    const ended = await say({ bearer, method: 'tool.invoke', params: { tool: 'ls' } });
    expect(ended).toEqual({ error: { code: 'denied', message: 'The lease is not valid: unknown, expired, ended or revoked' } });
    expect(await say({ bearer: 'x'.repeat(43), method: 'tool.invoke', params: { tool: 'ls' } })).toEqual(ended);
    expect(await say({ bearer: server.token, method: 'config.read' })).toEqual(ended);
    expect(audited.filter(({ tool }) => tool !== 'orchestrate').map(({ decision, reason, agentId }) => [decision, reason, agentId])).toEqual([
      ['deny', 'lease', null],
      ['deny', 'lease', null],
      ['deny', 'lease', null],
    ]);
  });

  test('completes the current call when it is revoked, and gets no other; ends at once when it is killed', { timeout: longMs }, async () => {
    const loop = 'for (;;) { await tools.call("ls"); console.log("called"); await new Promise((resolve) => setTimeout(resolve, 150)); }';
    for (const [method, shown] of [
      ['lease.revoke', /called[\s\S]*The lease is not valid/],
      ['run.kill', undefined],
    ] as const) {
      const summaries = server.heard('orchestrate:run_summary');
      const audited = server.heard('capability:audited');
      const running = run(loop).catch(() => '(the turn was ended)');
      await expect.poll(() => audited.some(({ tool }) => tool === 'ls'), { timeout: 20_000 }).toBe(true);
      const { runs: active } = await server.client.call('run.list', { state: 'active' });
      expect(active).toHaveLength(1);
      const rootRunId = active[0]?.rootRunId ?? '';
      await server.client.call(method, { rootRunId });
      const output = await running;
      if (shown !== undefined) expect(output).toMatch(shown);
      await expect.poll(() => summaries.length).toBe(1);
      expect(summaries[0]?.failureClass).toBe(shown === undefined ? 'killed' : 'nonzero_exit');
    }
  });
});

describe('the capability socket', () => {
  test('is a file that only its owner can access, and not part of the gateway', async () => {
    expect(statSync(join(server.homeDir, 'capability.sock')).mode & 0o777).toBe(0o600);
    for (const method of ['tool.invoke', 'orchestrate']) {
      const response = await fetch(`${server.url}/rpc`, {
        method: 'POST',
        headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { tool: 'ls' } }),
      });
      expect(await response.json()).toMatchObject({ error: { code: -32601 } });
    }
  });

  test('reports what is wrong with a line', async () => {
    expect(await say('{"bearer"\n')).toMatchObject({ error: { code: 'parse_error', message: expect.stringContaining('one line of JSON') } });
    expect(await say({ method: 'x' })).toMatchObject({ error: { code: 'invalid_params', message: expect.stringContaining('bearer') } });
    expect(await say({ bearer: 'x', method: 'x', params: [] })).toMatchObject({
      error: { code: 'invalid_params', message: expect.stringContaining('params') },
    });
    expect(await say(`{"bearer":"${'x'.repeat(70_000)}`)).toMatchObject({ error: { code: 'payload_too_large' } });
  });

  test('records a flood of refusals once, not each of them', async () => {
    const audited = server.heard('capability:audited');
    const forged = Array.from({ length: 100 }, (_, index) => say({ bearer: `forged-${index}`, method: 'tool.invoke', params: { tool: 'ls' } }));
    for (const reply of await Promise.all(forged)) expect(reply).toMatchObject({ error: { code: 'denied' } });
    expect(audited.length).toBeGreaterThanOrEqual(1);
    expect(audited.length).toBeLessThan(70);
    expect(audited.at(-1)).toMatchObject({ decision: 'deny', reason: 'rate', agentId: null });
  });
});

test('the tool is only offered when commands are enabled', async () => {
  await using off = await startTestServer({
    config: { exec: { enabled: false }, agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' } } } },
  });
  const { tools } = await off.client.call('tools.list', {});
  expect(tools.map(({ name }) => name)).toContain('sessions_send');
  expect(tools.map(({ name }) => name)).not.toContain('orchestrate');
});
