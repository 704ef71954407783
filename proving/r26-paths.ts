import { execFile } from 'node:child_process';
import { watch } from 'node:fs';
import { link, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type Daemon, startDaemon } from './lib/daemon.ts';
import { freePort, makeHome, removeHome, writeConfig } from './lib/home.ts';
import { hostilePaths, layLinks, type Surroundings } from './lib/hostile-paths.ts';
import { type Caller, pathDoors, planted } from './lib/path-doors.ts';
import { makeAskedCall, proofConfig } from './lib/provider.ts';
import { inParallel } from './lib/raw.ts';
import { rpcCall } from './lib/rpc.ts';

/**
 * R26: no path that anybody writes, and no link that is put in its way meanwhile, leads out of the workspace. What lies outside is not
 * read, changed, made or listed, and no answer tells whether it is there.
 */
export interface R26Report {
  readonly paths: number;
  readonly doors: number;
  /** Answers that were looked at; each path is asked for twice, with and without what it leads to. */
  readonly answers: number;
  /** Links that were put in the way, calls meanwhile, and those of them that reached the real file. */
  readonly raced: { readonly swaps: number; readonly calls: number; readonly through: number };
  readonly wrong: readonly string[];
}

const canary = 'canary-of-what-lies-outside';
const listed = 'listed-canary-name';
const inside = 'what-lies-inside';

/** Doors that answer whatever they do not open like what is not there. */
const alike: readonly string[] = ['workspace.readFile', 'workspace.deleteFile'];
/** What lies in the workspace itself, a link too, is deleted as the name that it is; what is internal is refused by its name, there or not. */
const isOpen = (door: string, path: string, answer: string): boolean =>
  door === 'workspace.deleteFile' && (/^\.g/i.test(path) || answer.includes('"deleted":true'));

export async function provePaths(options: {
  readonly swaps: number;
  /** Every nth path at each door, others at the next one; all of them otherwise. */
  readonly each?: number;
  /** Doors by name; all otherwise. */
  readonly only?: readonly string[];
  readonly broken?: string;
}): Promise<R26Report> {
  const wrong: string[] = [];
  const there = await walk({ ...options, laid: true, wrong });
  // What is forbidden is answered like what is missing: nobody learns what lies where.
  const gone = await walk({ ...options, swaps: 0, laid: false, wrong });
  for (const [cell, answer] of there.answers) {
    const other = gone.answers.get(cell);
    if (other !== answer)
      wrong.push(`${cell}: is answered otherwise when nothing is there:\n      ${answer.slice(0, 300)}\n      ${other?.slice(0, 300)}`);
  }
  const { paths, doors, raced } = there;
  return { paths, doors, answers: there.answers.size + gone.answers.size, raced, wrong };
}

/** Gives each path to each door of a daemon of its own; `laid` false leaves nothing where they lead. */
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
      // What the gate would ask about is run all the same: this is about paths alone.
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
    const doors = Object.entries(pathDoors).filter(([name]) => options.only?.includes(name) ?? true);
    const paths = hostilePaths(at);
    const answers = new Map<string, string>();
    await untouched(at, wrong, 'when it was asked for', async () => {
      for (const [index, [name, door]] of doors.entries()) {
        await layLinks(at);
        const missing = alike.includes(name) ? plain(await door(caller, 'missing.txt'), base) : undefined;
        const chosen = paths.filter((_path, n) => (n + index) % (options.each ?? 1) === 0);
        await inParallel(chosen, 8, async (path) => {
          const answer = await door(caller, path).catch((error: unknown) => `no answer: ${String(error)}`);
          const cell = `${name} ${JSON.stringify(path.replaceAll(base, '<base>').replaceAll(base.slice(1), '<base>'))}`;
          const told = secrets.find((secret) => answer.includes(secret));
          if (told !== undefined) wrong.push(`${cell}: tells ${told}: ${answer.slice(0, 300)}`);
          answers.set(cell, plain(answer, base));
          if (missing !== undefined && plain(answer, base) !== missing && !isOpen(name, path, answer))
            wrong.push(`${cell}: is not answered like what is missing: ${answer.slice(0, 300)}`);
        });
      }
    });
    const raced = options.swaps === 0 ? { swaps: 0, calls: 0, through: 0 } : await race(at, caller, options.swaps, secrets, wrong);
    return { paths: paths.length, doors: doors.length, answers, raced };
  } finally {
    agent.destroy();
    await daemon?.kill();
    await provider.close();
    await removeHome(base);
  }
}

/** Tells of every change to what lies outside, also of one that was taken back. */
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
  if (after !== before) wrong.push(`what lies outside was changed ${when}:\n${before}\n${after}`);
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

/** Names, kinds, contents and times of all that lies outside of the workspace and is nobody's to touch. */
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
 * Links take the places of folders and of a file, as a command of the agent can make them below the folders at the top, while
 * everything is called that goes through them.
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
      places: [
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
  const places: Readonly<Record<string, readonly string[]>> = {
    'workspace.listDir': folders,
    grep: [...folders, '.', 'projects/leaf.txt'],
    find: [...folders, '.'],
    ls: folders,
    exec: folders,
  };
  const doors = Object.entries(pathDoors).filter(([name]) =>
    /^(?:workspace\.(?!.*agentId)|read|write|edit|apply_patch|grep$|find$|ls|exec|resource of MCP$)/.test(name),
  );
  const ask = async (step: number): Promise<void> => {
    const [name, door] = doors[step % doors.length] ?? [];
    if (name === undefined || door === undefined) return;
    const choice = places[name] ?? files;
    const path = choice[Math.floor(step / doors.length) % choice.length] ?? '';
    const answer = await door(caller, path).catch((error: unknown) => `no answer: ${String(error)}`);
    raced.calls += 1;
    if (answer.includes(inside) || answer.includes(planted)) raced.through += 1;
    const told = secrets.find((secret) => answer.includes(secret));
    if (told !== undefined) wrong.push(`${name} ${path} while links are swapped: tells ${told}: ${answer.slice(0, 300)}`);
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
  if (found !== '') wrong.push(`what lies outside was committed: ${found.slice(0, 300)}`);
  return raced;
}

/** An answer without what is of its own each time. */
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
