import { fixed } from '../../../kernel/config/live.ts';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AgentConfig, type AgentConfigInput } from '@gatehouse/contract';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { findCommand } from '../../../../../../tools/system-packages.mjs';
import { AppError } from '../../../kernel/app-error.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { createEventBus } from '../../../kernel/event-bus.ts';
import { type Jail, openJail } from '../../../kernel/jail.ts';
import type { ToolContext, ToolResult } from '../../../runtime/tool.ts';
import { turnInput } from '../../../runtime/testing.ts';
import { silentLog } from '../../../kernel/log.ts';
import type { WorkspaceCapacity } from '../workspace/api.ts';
import { WorkspacesConfig } from '../workspace/config.ts';
import { createQuota } from '../workspace/quota/quota.ts';
import { allClean } from '../workspace/file-tools/testing.ts';
import { ExecConfig } from './config.ts';
import { createShell, type Shell } from './shell.ts';

const bubblewrap = findCommand('bwrap');

const core = {
  clock: systemClock,
  processClock: systemClock,
  bus: createEventBus(() => {}),
  traceWork: () => {},
  hideSecrets: (text: string) => text,
};

let base: string;
let workspaceDir: string;
let shell: Shell;
let agent: AgentConfig;
let jail: Jail;
const secretEnv = { GATEHOUSE_TOKEN: 'secret-of-the-daemon', API_NAME: 'named', PATH: '/nowhere' };
/** Capacity is covered by the tests of workspaces. */
const capacity: WorkspaceCapacity = { assertCapacity: async () => {}, watched: (opened) => opened };
const smallConfig = ExecConfig().parse({ memoryMb: 192, processes: 40, fileMb: 8, cpuSeconds: 20, maxBackgroundPerAgent: 2 });

beforeAll(async () => {
  jail = await openJail({ clock: systemClock });
});
afterAll(() => jail[Symbol.asyncDispose]());
beforeEach(() => {
  base = mkdtempSync(join(realpathSync(tmpdir()), 'gatehouse-shell-'));
  workspaceDir = join(base, 'workspaces', 'default');
  setAgent({});
  shell = createShell({
    ...core,
    config: fixed(smallConfig),
    jail: async () => jail,
    capacity,
    env: secretEnv,
    agentOf: () => agent,
    isStopped: () => false,
    taints: allClean,
  });
});
afterEach(async () => {
  await shell[Symbol.asyncDispose]();
  rmSync(base, { recursive: true, force: true });
});

function setAgent(config: AgentConfigInput): void {
  agent = AgentConfig.parse(config);
}

function contextOf(over: Partial<ToolContext> = {}): ToolContext {
  const { agentId, turnId, traceId, origin, conversationRef, sessionKey, principalId, call, signal } = turnInput();
  const callTool = async () => ({ content: 'none', isError: true });
  const about = { agentId, turnId, traceId, origin, conversationRef, sessionKey, principalId, call, signal };
  return { ...about, workspaceDir, callId: 'call_1', callTool, tainted: () => false, ...over };
}

async function use(name: 'exec' | 'process', args: unknown, over: Partial<ToolContext> = {}): Promise<ToolResult> {
  const tool = shell.tools().find((each) => each.name === name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  try {
    return await tool.run(tool.args.parse(args), contextOf(over));
  } catch (error) {
    if (error instanceof AppError) return { content: `${error.code}: ${error.message}`, isError: true };
    throw error;
  }
}
const exec = (argv: readonly string[], more: object = {}, over: Partial<ToolContext> = {}) => use('exec', { argv, ...more }, over);
const sh = (script: string, more: object = {}) => exec(['sh', '-c', script], more);
const idOf = ({ content }: ToolResult) => z.string().parse(/cmd_[0-9a-f-]{36}/.exec(content)?.[0]);
/** Lists programs of this machine with a word in their command line. */
const running = (word: string) =>
  readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(word);
    } catch {
      return false;
    }
  });

describe.skipIf(bubblewrap === undefined)('a command', () => {
  it('runs as written and reports how it ended; its output is from outside', async () => {
    expect(await exec(['echo', '$HOME; touch x', '`id`', '*'])).toEqual({
      content: expect.stringMatching(/^\[exit code 0, \d+\.\d s\]\n\$HOME; touch x `id` \*\n$/),
      outside: { source: 'command output', clean: true },
    });
    expect(await sh('echo out; echo err >&2; exit 3')).toMatchObject({
      content: expect.stringMatching(/^\[exit code 3, [^\n]*\]\n(out\nerr|err\nout)\n$/),
      isError: true,
    });
    expect(await sh('kill -TERM $$')).toMatchObject({ content: expect.stringContaining('[ended by SIGTERM'), isError: true });
    expect(await exec(['no-such-program'])).toMatchObject({
      content: expect.stringContaining('[exit code 127'),
      isError: true,
      traced: { errorKind: 'missing_dependency', facts: { exitCode: 127 } },
    });
    expect(await exec(['node', '-e', 'require("left-pad")'])).toMatchObject({ isError: true, traced: { errorKind: 'missing_dependency' } });
    expect((await exec(['false'])).traced).toEqual({ facts: { exitCode: 1 } });
    expect((await exec(['cat'], { stdin: 'line\n' })).content).toMatch(/\]\nline\n$/);
    expect((await exec(['node', '-p', 'process.version'])).content).toContain(process.version);
  });

  it('has a separate environment and only what the agent may see', async () => {
    setAgent({ exec: { env: ['API_NAME', 'NOT_SET', 'PATH'] } });
    const lines = (await exec(['env'])).content
      .split('\n')
      .slice(1)
      .filter((line) => line !== '')
      .toSorted();
    expect(lines).toEqual([
      'API_NAME=named',
      'HOME=/home/agent',
      'LANG=C.UTF-8',
      expect.stringMatching(/^PATH=\/opt\/gatehouse\/bin:/),
      'PWD=/workspace',
      'TERM=dumb',
    ]);
  });

  it('reads the workspace and writes to its folders, but not to the root, to skills or to hidden files', async () => {
    mkdirSync(join(workspaceDir, 'skills', 'a'), { recursive: true });
    mkdirSync(join(workspaceDir, '.gatehouse', 'offload'), { recursive: true });
    writeFileSync(join(workspaceDir, '.gatehouse', 'offload', 'a.txt'), 'what another conversation read');
    mkdirSync(join(workspaceDir, 'own'));
    mkdirSync(join(base, 'outside'));
    symlinkSync(join(base, 'outside'), join(workspaceDir, 'link'));
    writeFileSync(join(workspaceDir, 'SOUL.md'), 'soul');
    expect((await sh('cat SOUL.md')).content).toContain('soul');
    expect((await sh('ls -R .gatehouse; cat .gatehouse/offload/*')).content).not.toMatch(/a\.txt|another/);
    for (const target of ['SOUL.md', 'new.md', 'skills/a/SKILL.md', 'skills/b', '.gatehouse/x', '.git', 'link/x'])
      expect(await sh(`echo changed > ${target}`), target).toMatchObject({ isError: true });
    expect(await sh('mv projects elsewhere; rmdir data; ln -s /etc data2')).toMatchObject({ isError: true });
    expect(readFileSync(join(workspaceDir, 'SOUL.md'), 'utf8')).toBe('soul');
    expect(readdirSync(join(base, 'outside'))).toEqual([]);
    expect(readdirSync(workspaceDir).toSorted()).toEqual([
      '.gatehouse',
      'SOUL.md',
      'data',
      'documents',
      'link',
      'media',
      'output',
      'own',
      'projects',
      'scripts',
      'skills',
    ]);
    expect((await sh('echo made > a && mkdir b', { cwd: 'projects' })).content).toContain('[exit code 0');
    expect((await sh('echo made > /workspace/own/a')).content).toContain('[exit code 0');
    expect(readFileSync(join(workspaceDir, 'projects', 'a'), 'utf8')).toBe('made\n');
    for (const cwd of ['../..', '/etc', 'projects/../..'])
      expect(await sh('pwd', { cwd })).toMatchObject({ content: expect.stringContaining('invalid_params: cwd') });
    expect(await sh('pwd', { cwd: 'nowhere' })).toMatchObject({ content: expect.stringContaining("Can't chdir"), isError: true });
  });

  it('sees neither files of the machine nor its processes, and cannot change the kernel', async () => {
    writeFileSync(join(base, 'secret.txt'), 'SECRET');
    const { content } = await sh(`cat ${base}/secret.txt; ls /root /home /sys /var; cat /etc/shadow; ls /proc | grep -c '^[0-9]'; id -u`);
    expect(content).not.toContain('SECRET');
    expect(content).toMatch(/\n[1-9]\n1000\n$/);
    const before = readFileSync('/proc/sys/kernel/core_pattern', 'utf8');
    expect(await sh('echo "|/tmp/x" > /proc/sys/kernel/core_pattern')).toMatchObject({ isError: true });
    expect(readFileSync('/proc/sys/kernel/core_pattern', 'utf8')).toBe(before);
    expect((await sh('grep -c "^Cap.*[1-9a-f]$" /proc/self/status')).content).toMatch(/\n0\n$/);
  });

  it('has no network', async () => {
    let connections = 0;
    const listener = createServer(() => (connections += 1)).listen(0, '127.0.0.1');
    await new Promise((resolve) => listener.once('listening', resolve));
    const address = z.object({ port: z.number() }).parse(listener.address());
    const connect = [
      'node',
      '-e',
      `require('net').connect(${address.port},'127.0.0.1',()=>process.exit(0)).on('error',(e)=>{console.log(e.code);process.exit(7)})`,
    ];
    expect((await exec(connect)).content).toMatch(/^\[exit code 7.*(ECONNREFUSED|ENETUNREACH)/s);
    expect(await exec(connect, { network: true })).toMatchObject({ content: expect.stringContaining('denied: This agent may not use the network') });
    expect(connections).toBe(0);
    setAgent({ exec: { network: true } });
    expect((await exec(connect)).content).toContain('[exit code 7');
    expect(await exec(connect, { network: true })).toMatchObject({
      content: expect.stringContaining('[exit code 0'),
      outside: { source: 'command output with network' },
    });
    await expect.poll(() => connections).toBe(1);
    const id = idOf(await exec(connect, { network: true, background: true }));
    expect(await use('process', { action: 'read', id })).toMatchObject({ outside: { source: 'command output with network' } });
    listener.close();
  });

  it('requires approval for the network, and describes itself', () => {
    const tool = shell.tools().find(({ name }) => name === 'exec');
    const args = (value: object) => tool?.args.parse({ argv: ['npm', 'test', 'a b'], ...value });
    expect(tool?.mustAsk?.(args({ network: true }))).toContain('network');
    expect(tool?.mustAsk?.(args({}))).toBeUndefined();
    expect(tool?.describe?.(args({ cwd: 'projects/app', network: true }))).toBe('npm test "a b" in projects/app with network');
    expect(tool?.describe?.(args({ argv: ['x'.repeat(3000)] }))).toHaveLength(200);
    for (const argv of [[], [''], Array.from({ length: 257 }, () => 'a'), ['a\0b']]) expect(tool?.args.safeParse({ argv }).success).toBe(false);
  });

  it('may write much; both ends of the output are kept', async () => {
    const { content } = await sh('echo begin; yes 0123456789 | head -c 3000000; echo end');
    expect(content.length).toBeLessThan(300_000);
    expect(content).toMatch(/^\[exit code 0, [^\n]+\nbegin\n.*\n\[… \d{7} bytes left out …\]\n.*end\n$/s);
    expect(await exec(['yes'], { timeoutMs: 60_000 })).toMatchObject({
      content: expect.stringContaining('[stopped: it wrote more than 8 MiB'),
      isError: true,
    });
  });

  it('ends in time with everything it started, and on the signal of its call', async () => {
    const word = `sleep-${base.slice(-6)}`;
    const script = `exec 2>/dev/null; (setsid sh -c 'sleep 60 # ${word}' & sh -c 'trap "" TERM INT HUP; sleep 61 # ${word}' & ) ; echo started; sleep 62 # ${word}`;
    expect(await sh(script, { timeoutMs: 700 })).toMatchObject({
      content: expect.stringMatching(/^\[stopped: it did not end within 700 ms[^\n]*\]\nstarted\n$/),
      isError: true,
    });
    expect(running(word)).toEqual([]);
    const controller = new AbortController();
    const call = exec(['sh', '-c', script], {}, { signal: controller.signal });
    await expect.poll(() => running(word).length).toBeGreaterThan(1);
    controller.abort();
    expect((await call).content).toContain('[stopped: the call was cancelled');
    expect(running(word)).toEqual([]);
  });

  it('has limited processes, memory and files', async () => {
    expect((await sh('bomb() { bomb | bomb & }; bomb; sleep 2', { timeoutMs: 1500 })).content).toContain('Cannot fork');
    expect((await exec(['node', '-e', 'const a=[];for(;;)a.push(Buffer.alloc(1e7,1))'])).content).toContain('it needed more than the 192 MiB');
    expect((await sh('head -c 20000000 /dev/zero > data/large; ls -l data/large | cut -d" " -f5')).content).toContain('8388608');
    expect(await sh('head -c 20000000 /dev/zero > /dev/shm/a')).toMatchObject({ isError: true });
  });
});

describe.skipIf(bubblewrap === undefined)('a full workspace', () => {
  it('runs only commands that free space, and stops commands that fill it', async () => {
    await using quota = createQuota({
      clock: systemClock,
      log: silentLog,
      config: fixed(WorkspacesConfig().parse({ quotaMb: 2 })),
      disk: { check: async () => {}, shortage: () => undefined, lacking: () => undefined, assertCanWrite() {} },
    });
    shell = createShell({
      ...core,
      config: fixed(smallConfig),
      jail: async () => jail,
      capacity: quota,
      env: secretEnv,
      agentOf: () => agent,
      isStopped: () => false,
      taints: allClean,
    });
    expect((await sh('echo a > data/a')).content).toContain('[exit code 0');
    const fill = 'for i in 1 2 3; do head -c 900k /dev/zero > data/f$i; done; sleep 20';
    const id = idOf(await sh(fill, { background: true }));
    expect(await sh('sleep 20')).toMatchObject({
      content: expect.stringContaining('the workspace holds more than it may (workspaces.quotaMb'),
      isError: true,
    });
    await expect.poll(async () => (await use('process', { action: 'read', id })).content).toContain('ended by SIGKILL: the workspace holds more');
    for (const background of [false, true])
      expect(await exec(['rm2'], { background })).toMatchObject({
        content: expect.stringMatching(
          /^precondition_failed: The workspace is full: it holds 2\.\d MiB.*"data" 2\.\d MiB.*the programs "rm" and "chmod"/,
        ),
        isError: true,
      });
    expect((await exec(['rm', 'data/f1', 'data/f2'])).content).toContain('[exit code 0');
    expect((await sh('ls data')).content).toContain('a\nf3\n');
  });
});

describe.skipIf(bubblewrap === undefined)('commands in the background', () => {
  it('are read by offset, written to, listed and stopped', async () => {
    const begun = await exec(['sh', '-c', 'echo ready; while read line; do echo "got $line"; done; echo bye'], { background: true });
    const id = idOf(begun);
    expect((await use('process', { action: 'read', id, waitMs: 5000 })).content).toMatch(
      /^\[cmd_[^\n]*: running, 6 bytes of output, \d s; next offset 6\]\nready\n$/,
    );
    expect((await use('process', { action: 'write', id, input: 'one\n' })).isError).toBeUndefined();
    expect((await use('process', { action: 'read', id, offset: 6, waitMs: 5000 })).content).toMatch(/next offset 14\]\ngot one\n$/);
    expect((await use('process', { action: 'read', id, offset: 14 })).content).toContain('(nothing new)');
    expect((await use('process', { action: 'list' })).content).toMatch(/^cmd_[^\n]*: running, [^\n]*: sh -c echo ready/);
    await use('process', { action: 'write', id, input: 'two\n', close: true });
    await expect.poll(async () => (await use('process', { action: 'read', id })).content).toMatch(/: exit code 0, .*got two\nbye\n$/s);
    expect(await use('process', { action: 'write', id, input: 'x' })).toMatchObject({ content: expect.stringContaining('conflict'), isError: true });
    expect((await use('process', { action: 'kill', id })).content).toContain('had ended before: exit code 0');
  });

  it('belong to an agent and its principal: others get the answer of an unknown id', async () => {
    const id = idOf(await exec(['sleep', '60'], { background: true }));
    const none = id.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    for (const action of ['read', 'write', 'kill'] as const) {
      const unknown = await use('process', { action, id: none });
      expect(unknown.isError).toBe(true);
      for (const other of [{ agentId: 'other' }, { principalId: 'token:eve' }])
        expect((await use('process', { action, id }, other)).content.replaceAll(id, none)).toBe(unknown.content);
    }
    expect((await use('process', { action: 'list' }, { principalId: 'token:eve' })).content).toBe('(no commands in the background)');
    expect(await use('process', { action: 'read' })).toMatchObject({ content: 'invalid_params: id: expected the id of a command for "read"' });
  });

  it('are limited in number and in kept output', async () => {
    const id = idOf(await sh('yes 0123456789 | head -c 3000000; sleep 60', { background: true }));
    await expect.poll(async () => (await use('process', { action: 'list' })).content).toContain('3000000 bytes');
    expect((await use('process', { action: 'read', id })).content).toMatch(/\[bytes 0 to 1951424 are no longer kept\]\n/);
    await exec(['sleep', '60'], { background: true });
    expect(await exec(['sleep', '60'], { background: true })).toMatchObject({
      content: expect.stringContaining('2 commands in the background'),
      isError: true,
    });
    expect((await use('process', { action: 'kill', id })).content).toContain('was stopped');
    expect((await exec(['sleep', '60'], { background: true })).isError).toBeUndefined();
  });

  it('end with their agent', async () => {
    const word = `sleep-${base.slice(-6)}`;
    await sh(`sleep 60 # ${word}; true`, { background: true });
    const kept = idOf(await use('exec', { argv: ['sleep', '60'], background: true }, { agentId: 'other' }));
    await expect.poll(() => running(word).length).toBeGreaterThan(0);
    shell.background.forgetAgent(contextOf().agentId);
    await expect.poll(() => running(word)).toEqual([]);
    expect((await use('process', { action: 'list' })).content).toBe('(no commands in the background)');
    expect((await use('process', { action: 'list' }, { agentId: 'other' })).content).toContain(`${kept}: running`);
  });

  it('end with the shell, with everything they started', async () => {
    const word = `sleep-${base.slice(-6)}`;
    await sh(`(setsid sh -c 'sleep 60 # ${word}' &); sleep 61 # ${word}`, { background: true });
    await expect.poll(() => running(word).length).toBeGreaterThan(1);
    await shell[Symbol.asyncDispose]();
    expect(running(word)).toEqual([]);
  });
});

describe('without a jail', () => {
  it('refuses commands, and says what to install', async () => {
    shell = createShell({
      isStopped: () => false,
      ...core,
      config: fixed(smallConfig),
      jail: () => openJail({ clock: systemClock, find: () => undefined }),
      capacity,
      env: {},
      agentOf: () => agent,
      taints: allClean,
    });
    for (const background of [false, true])
      expect(await sh('echo ran > /tmp/ran', { background })).toMatchObject({
        content: expect.stringMatching(/^unavailable: .*bwrap and prlimit not found: install bubblewrap/),
        isError: true,
      });
    expect(existsSync(join(workspaceDir, 'projects'))).toBe(false);
  });

  it('treats a bubblewrap that cannot create a jail as missing', async () => {
    const fake = join(base, 'bwrap');
    writeFileSync(fake, '#!/bin/sh\necho "setting up uid map: Permission denied" >&2\nexit 1\n');
    chmodSync(fake, 0o755);
    await using none = await openJail({ clock: systemClock, find: (name) => (name === 'bwrap' ? fake : findCommand(name)) });
    expect(none.unavailable).toContain('setting up uid map: Permission denied');
    expect(() =>
      none.run({
        argv: ['true'],
        cwd: '/',
        mounts: [],
        env: {},
        network: false,
        limits: { memoryBytes: 1e9, processes: 9, cpuSeconds: 9, fileBytes: 1e6, openFiles: 64 },
      }),
    ).toThrow(/Commands run in a jail or not at all/);
  });

  it('offers no commands when they are switched off', () => {
    const off = createShell({
      isStopped: () => false,
      ...core,
      config: fixed(ExecConfig().parse({ enabled: false })),
      jail: async () => jail,
      capacity,
      env: {},
      agentOf: () => agent,
      taints: allClean,
    });
    expect(off.tools()).toEqual([]);
  });
});
