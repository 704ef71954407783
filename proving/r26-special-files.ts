import { execFile } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { freePort } from '@gatehouse/testkit/free-port';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { pathRoutes } from './lib/path-routes.ts';
import { makeAskedCall, proofConfig } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';

/** R26: no pipe or socket that a command leaves in a workspace, at any path and with any name, keeps the daemon waiting. */
export interface SpecialFilesReport {
  readonly files: number;
  readonly calls: number;
  /** Duration of the slowest call. */
  readonly longestMs: number;
  readonly wrong: readonly string[];
}

const names = ['.gitignore', '.gitattributes', '.gitmodules', '.mailmap', '.git', 'HEAD', 'commondir', 'config', 'SOUL.md', 'notes.txt'];
const folders = ['projects', 'projects/inner', 'projects/repo/.git', 'documents', 'skills/notes'];
/** Git is killed after two seconds of sleep, twice at most. */
const longestAllowedMs = 15_000;

export async function proveSpecialFiles(options: {
  readonly rounds: number;
  /** Concurrent calls of git while a program creates pipes. */
  readonly raced: number;
  readonly broken?: string;
}): Promise<SpecialFilesReport> {
  const home = await makeHome();
  const workspace = join(home, 'workspaces/default');
  const agent = new Agent({ keepAlive: true });
  const provider = await startFakeProvider({ journal: 0, answer: makeAskedCall });
  const wrong: string[] = [];
  let [files, calls, longestMs] = [0, 0, 0];
  const port = await freePort();
  await writeConfig(home, {
    ...proofConfig(provider.url, { agents: { default: { model: 'local/test-model', tools: { profile: 'full', discovery: { mode: 'never' } } } } }),
    approvals: { rules: [{ tools: ['group:fs', 'exec'], action: 'auto', tainted: true }] },
  });
  const daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
  try {
    const caller = { port, token: daemon.token, agent };
    const call = async (method: 'workspace.init' | 'workspace.git.status' | 'workspace.git.diff' | 'workspace.git.commit' | 'workspace.listDir') => {
      const begun = performance.now();
      calls += 1;
      const answer = await rpcCall(caller, method, { agentId: 'default' }, { timeoutMs: 60_000 }).catch((error: unknown) => String(error));
      longestMs = Math.max(longestMs, performance.now() - begun);
      return JSON.stringify(answer);
    };
    /** A program creates them repeatedly: an answer may refuse, but it comes, and the next call has its turn. */
    const race = async () => {
      const worker = new Worker(`setInterval(() => require('node:child_process').spawnSync('mkfifo', [process.argv[2]], { stdio: 'ignore' }), 20)`, {
        eval: true,
        argv: [join(workspace, 'projects/.gitignore')],
      });
      const begun = performance.now();
      try {
        for (const answer of await Promise.all(Array.from({ length: options.raced }, () => call('workspace.git.status'))))
          if (!answer.includes('entries') && !answer.includes('blocks git')) wrong.push(`while pipes are made: ${answer.slice(0, 300)}`);
      } finally {
        await worker.terminate();
      }
      const eachMs = (performance.now() - begun) / options.raced;
      if (eachMs > longestAllowedMs) wrong.push(`while pipes are made, a call has its turn after ${Math.round(eachMs)} ms`);
    };
    await call('workspace.init');
    await writeFile(join(workspace, 'documents/kept.md'), 'first\n');
    await call('workspace.git.commit');
    for (let round = 0; round < options.rounds; round += 1) {
      for (const folder of folders) {
        await mkdir(join(workspace, folder), { recursive: true, mode: 0o700 });
        const there = new Set(await readdir(join(workspace, folder)));
        const missing = names.filter((name) => !there.has(name)).map((name) => join(workspace, folder, name));
        if (missing.length > 0) await promisify(execFile)('mkfifo', missing);
        files += missing.length;
      }
      await writeFile(join(workspace, 'documents/kept.md'), `round ${round}\n`);
      const methods = ['workspace.git.status', 'workspace.git.diff', 'workspace.git.commit', 'workspace.listDir'] as const;
      // Where git waits, each call of it takes seconds.
      for (const method of options.broken === undefined ? methods : methods.slice(0, 1)) {
        const answer = await call(method);
        if (/timeout|blocks git|took longer|internal/i.test(answer)) wrong.push(`${method}: ${answer.slice(0, 300)}`);
      }
      for (const [name, route] of Object.entries(pathRoutes).filter(
        ([route]) => options.broken === undefined && /^(?:read|ls|find|grep|workspace\.readFile)$/.test(route),
      )) {
        const answer = await route(caller, name === 'read' || name === 'workspace.readFile' ? 'projects/notes.txt' : 'projects').catch(String);
        calls += 1;
        if (/timeout|took longer|internal error/i.test(answer)) wrong.push(`${name}: ${answer.slice(0, 300)}`);
      }
    }
    if (longestMs > longestAllowedMs) wrong.push(`a call took ${Math.round(longestMs)} ms`);
    if (options.raced > 0) await race();
    return { files, calls, longestMs: Math.round(longestMs), wrong };
  } finally {
    agent.destroy();
    await daemon.kill();
    await provider.close();
    await removeHome(home);
  }
}
