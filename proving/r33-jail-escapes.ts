import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type FakeRequest, startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type Daemon, operatorToken, pause, startDaemon } from './lib/daemon.ts';
import { type Escape, escapes } from './lib/escapes.ts';
import { scriptEscapes, scriptOf } from './lib/script-escapes.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { ailmentOf, rssMb } from './lib/process.ts';
import { proofConfig } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';

/** R33: a command, and a script of `orchestrate`, reaches nothing outside of its jail, and uses no more than its limits. */
export interface R33Report {
  readonly programs: number;
  /** Unexpected outcomes, each in one line. */
  readonly wrong: readonly string[];
  /** Time above its limit of the slowest program, in milliseconds. */
  readonly latestMs: number;
  /** Peak growth of the daemon while a program ran. */
  readonly grownMb: number;
}

const timeoutMs = 2000;
const maxGrownMb = 64;
/** Growth over all programs together: garbage that is collected under pressure. */
const maxHeldMb = 128;
const secret = 'secret-of-the-machine-4711';
const soul = 'You are kind.\n';

const Messages = z.object({ messages: z.array(z.object({ role: z.string(), content: z.unknown() })) });

export async function proveJailEscapes(options: {
  /** Names of programs; all by default. Without a jail only the harmless ones are run. */
  readonly only?: readonly string[];
  /** The same programs as scripts, and those that misuse the resources of scripts; otherwise commands. */
  readonly asScripts?: boolean;
  /** Milliseconds above its limit that a program may take. */
  readonly graceMs?: number;
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}): Promise<R33Report> {
  const { graceMs = 1_000 } = options;
  const [home, outside, port] = [await makeHome(), await makeHome(), await freePort()];
  const workspace = join(home, 'workspaces', 'default');
  let escape: Escape = { argv: ['true'] };
  let toldAt = 0;
  let answered: { readonly text: string; readonly tookMs: number } | undefined;
  const provider = await startFakeProvider({
    journal: 0,
    answer: (request: FakeRequest) => {
      const last = Messages.safeParse(request.body).data?.messages.at(-1);
      if (last?.role === 'tool') {
        answered = { text: JSON.stringify(last.content), tookMs: performance.now() - toldAt };
        return { text: 'done' };
      }
      toldAt = performance.now();
      return { toolCalls: [{ id: 'call_1', ...callOf(escape) }] };
    },
  });
  const callOf = (program: Escape) => {
    if (options.asScripts === true)
      return { name: 'orchestrate', arguments: JSON.stringify({ script: scriptOf(program), language: 'js', timeoutMs }) };
    const { argv, stdin } = program;
    return { name: 'exec', arguments: JSON.stringify({ argv, timeoutMs, ...(stdin !== undefined && { stdin }) }) };
  };
  await writeConfig(home, {
    ...proofConfig(provider.url, {
      agents: { default: { name: 'Gate', model: 'local/test-model', tools: { profile: 'coding', allow: ['web_fetch'] } } },
    }),
    exec: { memoryMb: 256, processes: 64, cpuSeconds: 5, fileMb: 16 },
    // Calls that the gate would ask about run anyway: this is about the jail alone.
    approvals: { rules: [{ tools: ['exec', 'orchestrate', 'web_fetch'], action: 'auto', tainted: true }] },
  });
  await mkdir(join(workspace, 'skills'), { recursive: true, mode: 0o700 });
  await writeFile(join(workspace, 'SOUL.md'), soul);
  await writeFile(join(outside, 'secret'), secret);
  let connections = 0;
  const listeners: Server[] = [];
  const listen = async (where: string | number) => {
    const server = createServer((socket) => {
      connections += 1;
      socket.destroy();
    });
    listeners.push(server);
    await new Promise<void>((resolve) => (typeof where === 'number' ? server.listen(where, '::', resolve) : server.listen(where, resolve)));
    return server;
  };
  const tcpPort = ((await listen(0)).address() as AddressInfo).port;
  await listen(join(outside, 'socket'));
  await listen(`\0gatehouse-proof-${tcpPort}`);
  const corePattern = await readFile('/proc/sys/kernel/core_pattern', 'utf8');
  let victim = startVictim();
  let daemon: Daemon | undefined;
  try {
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    const wrong: string[] = [];
    let latestMs = 0;
    let grownMb = 0;
    const run = async (name: string) => {
      answered = undefined;
      await rpcCall(
        { port, token: operatorToken },
        'agent.execute',
        { message: name, sessionKey: `${name.replaceAll(/\W+/g, '-')}:proof` },
        { timeoutMs: 60_000 },
      );
      return answered as { readonly text: string; readonly tookMs: number } | undefined;
    };
    // Everything that is loaded with the first command is loaded.
    await run('nothing');
    const beforeMb = rssMb(daemon.pid);
    const { pid } = daemon;
    const around = { outside, port: tcpPort, victim: victim.pid ?? 0, daemon: pid, home };
    const all = Object.entries({ ...escapes(around), ...(options.asScripts === true && scriptEscapes(around)) });
    const chosen = all.filter(
      ([name, { harmless }]) => (options.only?.includes(name) ?? true) && (options.broken !== 'no-jail' || harmless === true),
    );
    for (const [name, program] of chosen) {
      escape = program;
      const begunMb = rssMb(pid);
      const watching = setInterval(() => (grownMb = Math.max(grownMb, rssMb(pid) - begunMb)), 100);
      const result = await run(name).finally(() => clearInterval(watching));
      const found = await traces(name);
      if (result === undefined) found.push('its command was not run');
      else {
        latestMs = Math.max(latestMs, result.tookMs - timeoutMs);
        if (result.tookMs > timeoutMs + graceMs) found.push(`it ended after ${Math.round(result.tookMs)} ms, of ${timeoutMs}`);
        if (result.text.includes(secret)) found.push('it has read a file outside');
        if (result.text.includes(operatorToken) || result.text.includes('openai-compatible')) found.push('it has read secrets of the daemon');
        if (result.text.includes('GIVEN: ')) found.push(`it was given ${/GIVEN: ([^\\"]*)/.exec(result.text)?.[1]}`);
        if (!/exit code|ended by|stopped|could not|\[(?:ok|timeout|stdout_cap|nonzero_exit|killed)\b/.test(result.text))
          found.push(`its command was refused: ${result.text.slice(0, 200)}`);
      }
      const ailment = await ailmentOf(daemon, beforeMb, maxHeldMb);
      if (ailment !== '') found.push(ailment);
      wrong.push(...found.map((line) => `${name}: ${line}`));
    }
    if (grownMb > maxGrownMb) wrong.push(`the daemon held ${Math.round(grownMb)} MiB more than when a program began`);
    options.progress?.(`R33: ${chosen.length} programs, the last ended ${Math.round(latestMs)} ms after its limit; ${wrong.length} wrong`);
    return { programs: chosen.length, wrong, latestMs: Math.round(latestMs), grownMb: Math.round(grownMb) };
  } finally {
    victim.kill('SIGKILL');
    for (const server of listeners) server.close();
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
    await removeHome(outside);
  }

  /** What the last program has left outside. */
  async function traces(name: string): Promise<string[]> {
    if (name === 'leaves something behind') await pause(1500);
    const found: string[] = [];
    const strange = (await readdir(outside)).filter((file) => !['secret', 'socket'].includes(file));
    if (strange.length > 0) found.push(`it has written ${strange.join(', ')}`);
    if ((await readFile(join(workspace, 'SOUL.md'), 'utf8').catch(() => 'gone')) !== soul) {
      found.push('it has changed a file of the prompt');
      await writeFile(join(workspace, 'SOUL.md'), soul);
    }
    const top = (await readdir(workspace, { withFileTypes: true })).filter(
      (entry) =>
        !(entry.isDirectory() && ['projects', 'scripts', 'documents', 'media', 'data', 'output', 'skills', '.gatehouse'].includes(entry.name)),
    );
    if (top.some((entry) => entry.name !== 'SOUL.md')) found.push('it has changed the root of the workspace');
    if ((await readdir(join(workspace, 'skills'))).length > 0) found.push('it has planted a skill');
    const data = await readdir(join(workspace, 'data')).catch((): string[] => []);
    if (data.includes('late')) found.push('it was given something after its end');
    if (connections > 0) found.push(`it has made ${connections} connections`);
    connections = 0;
    if (victim.exitCode !== null || victim.signalCode !== null) {
      found.push('it has ended another process');
      victim = startVictim();
    }
    if ((await readFile('/proc/sys/kernel/core_pattern', 'utf8')) !== corePattern) found.push('it has changed the kernel');
    const left = await processesIn(workspace);
    if (left.length > 0) found.push(`${left.length} processes are left`);
    return found;
  }
}

/** Its environment holds the secret too. */
function startVictim() {
  return spawn('sleep', ['600'], { stdio: 'ignore', env: { SECRET: secret, PATH: '/usr/bin:/bin' } });
}

/** Processes of this machine whose working folder is in a mount of the workspace. */
async function processesIn(workspace: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const mounts = await readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '');
    if (mounts.includes(' /workspace/projects ') && mounts.includes(workspace)) found.push(pid);
  }
  return found;
}
