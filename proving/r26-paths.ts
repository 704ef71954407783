import { execFile } from 'node:child_process';
import { watch } from 'node:fs';
import { link, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { freePort } from '@gatehouse/testkit/free-port';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type Daemon, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { hostilePaths, layLinks, type Surroundings } from './lib/hostile-paths.ts';
import { type Caller, pathRoutes, planted } from './lib/path-routes.ts';
import { makeAskedCall, proofConfig } from './lib/provider.ts';
import { inParallel } from './lib/raw.ts';
import { rpcCall } from './lib/rpc.ts';

/**
 * R26: no path that a caller writes, and no link that is swapped in meanwhile, leads out of the workspace. Files outside are not
 * read, changed, created or listed, and no answer reveals whether they exist.
 */
export interface R26Report {
  readonly paths: number;
  readonly routes: number;
  /** Checked answers; each path is used twice, with and without its target. */
  readonly answers: number;
  /** Links that were swapped in, calls meanwhile, and those of them that reached the real file. */
  readonly raced: { readonly swaps: number; readonly calls: number; readonly through: number };
  readonly wrong: readonly string[];
}

const canary = 'canary-of-the-outside';
const listed = 'listed-canary-name';
const inside = 'text-of-the-inside';

/** Routes that answer for paths that they do not open as for missing ones. */
const alike: readonly string[] = ['workspace.readFile', 'workspace.deleteFile'];
/** Entries of the workspace itself, also links, are deleted under their own name; internal ones are refused by their name, existing or not. */
const isOpen = (route: string, path: string, answer: string): boolean =>
  route === 'workspace.deleteFile' && (/^\.g/i.test(path) || answer.includes('"deleted":true'));

export async function provePaths(options: {
  readonly swaps: number;
  /** Every nth path at each route, others at the next one; all by default. */
  readonly each?: number;
  /** Routes by name; all by default. */
  readonly only?: readonly string[];
  /** False skips the comparison with answers when nothing is there. */
  readonly compares?: boolean;
  readonly broken?: string;
}): Promise<R26Report> {
  const wrong: string[] = [];
  const there = await walk({ ...options, laid: true, wrong });
  const { paths, routes, raced } = there;
  if (options.compares === false) return { paths, routes, answers: there.answers.size, raced, wrong };
  // Forbidden paths are answered like missing ones: no caller learns what exists.
  const gone = await walk({ ...options, swaps: 0, laid: false, wrong });
  for (const [cell, answer] of there.answers) {
    const other = gone.answers.get(cell);
    if (other !== answer)
      wrong.push(`${cell}: is answered otherwise when nothing is there:\n      ${answer.slice(0, 300)}\n      ${other?.slice(0, 300)}`);
  }
  return { paths, routes, answers: there.answers.size + gone.answers.size, raced, wrong };
}

/** Passes each path to each route of a new daemon; `laid` false leaves nothing at their targets. */
async function walk(options: {
  readonly swaps: number;
  readonly each?: number;
  readonly only?: readonly string[];
  readonly broken?: string;
  readonly laid: boolean;
  readonly wrong: string[];
}) {
  const { wrong } = options;
  const base = await makeHome();
  const home = join(base, 'home');
  const at: Surroundings = {
    base,
    outside: join(base, 'outside'),
    workspace: join(home, 'workspaces/default'),
    sibling: join(home, 'workspaces/default-2'),
  };
  const provider = await startFakeProvider({ journal: 0, answer: makeAskedCall });
  const agent = new Agent({ keepAlive: true });
  let daemon: Daemon | undefined;
  try {
    await mkdir(at.workspace, { recursive: true, mode: 0o700 });
    await layOutside(at, options.laid);
    const tools = { profile: 'full', discovery: { mode: 'never' } };
    const model = 'local/test-model';
    await writeConfig(home, {
      ...proofConfig(provider.url, { agents: { default: { model, maxConcurrentRuns: 1000, tools }, 'default-2': { model } } }),
      // Calls that the gate would ask about run anyway: this is about paths alone.
      approvals: { rules: [{ tools: ['group:fs', 'exec', 'skill'], action: 'auto', tainted: true }] },
    });
    const port = await freePort();
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    const caller = { port, token: daemon.token, agent };
    await rpcCall(caller, 'workspace.init', { agentId: 'default' });
    await rpcCall(caller, 'skills.create', { name: 'notes', content: '---\nname: notes\ndescription: Writes notes.\n---\n\nWrite notes.\n' });
    await layLinks(at);
    await rpcCall(caller, 'workspace.git.commit', { agentId: 'default' });
    const secrets = [canary, listed, (await readFile(join(home, 'install.key'), 'utf8')).trim()];
    const routes = Object.entries(pathRoutes).filter(([name]) => options.only?.includes(name) ?? true);
    const paths = hostilePaths(at);
    const answers = new Map<string, string>();
    await untouched(at, wrong, 'by a request', async () => {
      for (const [index, [name, route]] of routes.entries()) {
        await layLinks(at);
        const missing = alike.includes(name) ? plain(await route(caller, 'missing.txt'), base) : undefined;
        const chosen = paths.filter((_path, n) => (n + index) % (options.each ?? 1) === 0);
        await inParallel(chosen, 8, async (path) => {
          const answer = await route(caller, path).catch((error: unknown) => `no answer: ${String(error)}`);
          const cell = `${name} ${JSON.stringify(path.replaceAll(base, '<base>').replaceAll(base.slice(1), '<base>'))}`;
          const leaked = secrets.find((secret) => answer.includes(secret));
          if (leaked !== undefined) wrong.push(`${cell}: reveals ${leaked}: ${answer.slice(0, 300)}`);
          answers.set(cell, plain(answer, base));
          if (missing !== undefined && plain(answer, base) !== missing && !isOpen(name, path, answer))
            wrong.push(`${cell}: is not answered like a missing path: ${answer.slice(0, 300)}`);
        });
      }
    });
    const raced = options.swaps === 0 ? { swaps: 0, calls: 0, through: 0 } : await race(at, caller, options.swaps, secrets, wrong);
    return { paths: paths.length, routes: routes.length, answers, raced };
  } finally {
    agent.destroy();
    await daemon?.kill();
    await provider.close();
    await removeHome(base);
  }
}

/** Reports every change outside of the workspace, also one that was undone. */
async function untouched(at: Surroundings, wrong: string[], when: string, work: () => Promise<void>): Promise<void> {
  const before = await pictureOf(at);
  const changes: string[] = [];
  const watcher = watch(at.outside, { recursive: true }, (event, name) => changes.push(`${event} ${name}`));
  try {
    await work();
  } finally {
    watcher.close();
  }
  if (changes.length > 0) wrong.push(`outside ${when}: ${changes.slice(0, 10).join(', ')}`);
  const after = await pictureOf(at);
  if (after !== before) wrong.push(`files outside were changed ${when}:\n${before}\n${after}`);
}

async function layOutside({ base, outside, workspace, sibling }: Surroundings, laid: boolean): Promise<void> {
  await mkdir(outside);
  await mkdir(sibling, { mode: 0o700 });
  // A second name of a file outside is as readable as the first.
  await writeFile(join(base, 'twice.txt'), `${canary}\n`);
  await link(join(base, 'twice.txt'), join(workspace, 'hard.txt'));
  if (!laid) return;
  await mkdir(join(outside, 'folder'));
  for (const file of ['secret.txt', 'folder/deep.txt', listed, `folder/${listed}`]) await writeFile(join(outside, file), `${canary}\n`);
  for (const file of ['secret.txt', listed]) await writeFile(join(sibling, file), `${canary}\n`);
}

/** Names, kinds, contents and times of everything outside of the workspace, which no call may touch. */
async function pictureOf({ base, outside, workspace, sibling }: Surroundings): Promise<string> {
  const lines: string[] = [(await readdir(base)).join(), (await readdir(join(workspace, '..'))).toSorted().join()];
  for (const root of [outside, sibling])
    for (const name of (await readdir(root, { recursive: true })).toSorted()) {
      const { mode, mtimeMs, ino } = await stat(join(root, name));
      lines.push([root, name, mode, mtimeMs, ino, await readFile(join(root, name), 'utf8').catch(() => 'folder')].join(' '));
    }
  lines.push(await readFile(join(base, 'home/config.yaml'), 'utf8'), await readFile(join(base, 'home/install.key'), 'utf8'));
  return lines.join('\n');
}

/**
 * Replaces folders and a file by links, as a command of the agent can create them below the top folders, while
 * every route through them is called.
 */
async function race(at: Surroundings, caller: Caller, swaps: number, secrets: readonly string[], wrong: string[]) {
  const { workspace, outside } = at;
  const folders = ['documents/swapped', 'projects/swapped'];
  for (const folder of folders) {
    await mkdir(join(workspace, folder, 'folder'), { recursive: true, mode: 0o700 });
    for (const file of ['secret.txt', 'folder/deep.txt']) await writeFile(join(workspace, folder, file), `${inside}\n`);
  }
  await writeFile(join(workspace, 'projects/leaf.txt'), `${inside}\n`);
  await rpcCall(caller, 'workspace.git.commit', { agentId: 'default' });
  const raced = { swaps: 0, calls: 0, through: 0 };
  const worker = new Worker(new URL('lib/link-swapper.ts', import.meta.url), {
    workerData: {
      swaps,
      entries: [
        ...folders.map((folder) => ({ path: join(workspace, folder), target: outside })),
        { path: join(workspace, 'projects/leaf.txt'), target: join(outside, 'secret.txt') },
      ],
    },
  });
  const over = Promise.withResolvers<void>();
  let running = true;
  worker.once('message', (made: unknown) => (raced.swaps = Number(made)));
  worker.once('error', over.reject);
  worker.once('exit', () => over.resolve());
  void over.promise.finally(() => (running = false)).catch(() => undefined);
  const files = [...folders.flatMap((folder) => [`${folder}/secret.txt`, `${folder}/folder/deep.txt`, `${folder}/new.txt`]), 'projects/leaf.txt'];
  const choices: Readonly<Record<string, readonly string[]>> = {
    'workspace.listDir': folders,
    grep: [...folders, '.', 'projects/leaf.txt'],
    find: [...folders, '.'],
    ls: folders,
    exec: folders,
  };
  const routes = Object.entries(pathRoutes).filter(([name]) =>
    /^(?:workspace\.(?!.*agentId)|read|write|edit|apply_patch|grep$|find$|ls|exec|resource of MCP$)/.test(name),
  );
  const ask = async (step: number): Promise<void> => {
    const [name, route] = routes[step % routes.length] ?? [];
    if (name === undefined || route === undefined) return;
    const choice = choices[name] ?? files;
    const path = choice[Math.floor(step / routes.length) % choice.length] ?? '';
    const answer = await route(caller, path).catch((error: unknown) => `no answer: ${String(error)}`);
    raced.calls += 1;
    if (answer.includes(inside) || answer.includes(planted)) raced.through += 1;
    const leaked = secrets.find((secret) => answer.includes(secret));
    if (leaked !== undefined) wrong.push(`${name} ${path} while links are swapped: reveals ${leaked}: ${answer.slice(0, 300)}`);
  };
  let step = 0;
  await untouched(at, wrong, 'while links were swapped', async () => {
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        while (running) await ask((step += 1));
      }),
    );
    await over.promise;
  });
  const git = (...args: string[]) => promisify(execFile)('git', [`--git-dir=${join(workspace, '../.git-default')}`, ...args]);
  const { stdout: commits } = await git('rev-list', '--all');
  const found = await git('grep', '-l', canary, ...commits.trim().split('\n')).then(
    ({ stdout }) => stdout,
    () => '',
  );
  if (found !== '') wrong.push(`files outside were committed: ${found.slice(0, 300)}`);
  return raced;
}

/** Removes what differs in each answer. */
function plain(answer: string, base: string): string {
  return answer
    .replaceAll(base, '<base>')
    .replaceAll(base.slice(1), '<base>')
    .replaceAll(/planted-\d+/g, '<skill>')
    .replaceAll(/\d+\.\d s\b/g, '<duration>')
    .replaceAll(/\b(req|cv|tn|resp|msg|md|chatcmpl|ar|au)_[A-Za-z0-9_-]+/g, '<$1>')
    .replaceAll(/path-\d+:proof/g, '<key>')
    .replaceAll(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b|\b[0-9a-f]{32,64}\b/g, '<id>')
    .replaceAll(/\b1[0-9]{9}([0-9]{3})?\b/g, '<time>');
}
