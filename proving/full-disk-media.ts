import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { silentWav, startFakeMedia } from '@gatehouse/testkit';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { findCommand } from '../tools/system-packages.mjs';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { filesBelow, makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { askForCall, makeAskedCall, proofConfig } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';
import { fill, mountMissing } from './scarcity.ts';

/**
 * Proves what a full disk does to downloads, pictures, PDF files, recordings of browsers, speech, images, uploads and knowledge folders: the
 * cause is named, what was acknowledged stays, nothing that is cut off counts as whole, and all of it works again when space is free.
 */
export interface MediaDiskReport {
  /** Files that were acknowledged. */
  readonly acked: number;
  /** Attempts on the full disk that named the cause. */
  readonly refused: number;
  readonly wrong: readonly string[];
}

const names = /disk .*is full|the disk is too full/i;
const becomesMs = 20_000;
const Acted = z.looseObject({ downloads: z.array(z.looseObject({ path: z.string().optional(), error: z.string().optional() })).optional() });
const Answer = z.looseObject({ response: z.string() });
const Spoken = z.looseObject({ filePath: z.string() });
const Uploaded = z.looseObject({ mediaId: z.string().optional(), error: z.string().optional() });
const Sources = z.object({
  sources: z.array(z.looseObject({ state: z.string(), problem: z.string().optional(), files: z.number() })).length(1),
});
const Recorded = z.object({ recordings: z.array(z.looseObject({ recordingId: z.string(), steps: z.number() })) });
const Steps = z.looseObject({
  steps: z.array(z.looseObject({ step: z.number(), picture: z.boolean() })),
  gaps: z.array(z.looseObject({ from: z.number(), missing: z.number() })),
});
const Health = z.looseObject({ status: z.string() });

/** Why this machine cannot do it; undefined when it can. */
export function mediaDiskMissing(): string | undefined {
  const missing = ['bwrap', 'chromium', 'espeak-ng'].filter((name) => findCommand(name) === undefined);
  return mountMissing() ?? (missing.length === 0 ? undefined : `${missing.join(', ')} missing`);
}

/** Runs the proof; with `filesOnly` the databases are on another disk. */
export async function proveFullMediaDisk(options: { readonly filesOnly: boolean; readonly broken?: string }): Promise<MediaDiskReport> {
  const dir = await makeHome();
  const home = join(dir, 'disk');
  const folder = join(dir, 'papers');
  for (const path of [home, folder, join(dir, 'databases')]) await mkdir(path, { mode: 0o700 });
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64m,mode=0700', 'tmpfs', home]);
  if (mounted.status !== 0) throw new Error(`mount: ${String(mounted.stderr)}`);
  await using fake = await startFakeMedia();
  const provider = await startFakeProvider({ journal: 0, answer: makeAskedCall });
  let daemon: Daemon | undefined;
  try {
    await writeFile(join(folder, 'first.md'), '# First\n\nApples are red.');
    await writeConfig(home, {
      ...proofConfig(provider.url, {
        browser: { enabled: true },
        agents: {
          default: { name: 'Gate', model: 'local/test-model', tools: { profile: 'full' }, knowledge: { sources: [{ name: 'papers', folder }] } },
        },
        tts: { providers: [{ type: 'espeak' }] },
        imageGen: { providers: [{ type: 'openai', apiKey: 'none', baseUrl: `${fake.url}/v1` }] },
      }),
      storage: { minFreeBytes: 0 },
    });
    if (options.filesOnly) {
      await mkdir(join(home, 'data'), { mode: 0o700 });
      for (const name of ['gatehouse.db', 'telemetry.db']) await symlink(join(dir, 'databases', name), join(home, 'data', name));
    }
    const { broken } = options;
    daemon = await startDaemon({ home, port: await freePort(), workingDir: dir, ...(broken !== undefined && { broken }) });
    return await runFull(daemon, folder, options.filesOnly);
  } finally {
    await daemon?.kill();
    await provider.close();
    spawnSync('umount', [home]);
    await removeHome(dir);
  }
}

async function runFull(daemon: Daemon, folder: string, filesOnly: boolean): Promise<MediaDiskReport> {
  const { home, port, token } = daemon;
  const wrong: string[] = [];
  /** Sizes of acknowledged files, by path. */
  const acked = new Map<string, number>();
  let refused = 0;
  const rpc = (method: string, params: object) => rpcCall(daemon, method, params, { timeoutMs: 60_000 });
  const makers = makersOf(daemon);

  async function makeAll(when: string): Promise<void> {
    for (const [what, make] of Object.entries(makers)) {
      const said = await make().catch((error: unknown) => String(error));
      if (typeof said === 'string') wrong.push(`${what} ${when}: ${said}`);
      else acked.set(said.file, statSync(said.file).size);
    }
  }

  async function refuseAll(): Promise<void> {
    for (const [what, make] of Object.entries(makers)) {
      await fill(home);
      const said = await make().catch((error: unknown) => String(error));
      if (typeof said !== 'string') wrong.push(`${what} on a full disk was acknowledged: ${said.file}`);
      else if (names.test(said)) refused += 1;
      else wrong.push(`${what} on a full disk: ${said}`);
    }
    // What stores nothing is not affected.
    await rpc('browser.screenshot', {}).catch((error: unknown) => wrong.push(`a picture for the caller: ${String(error)}`));
    await rpc('knowledge.search', { query: 'apples' }).catch((error: unknown) => wrong.push(`a search: ${String(error)}`));
  }

  const source = async () => Sources.parse(await rpc('knowledge.list', {})).sources[0];
  async function becomes(what: string, holds: () => Promise<boolean>): Promise<void> {
    for (const until = performance.now() + becomesMs; !(await holds()); await pause(100))
      if (performance.now() > until) return void wrong.push(`${what}: ${JSON.stringify(await source())}`);
  }

  await rpc('browser.navigate', { url: 'about:blank' });
  await makeAll('at first');
  await becomes('the folder is not indexed', async () => (await source())?.files === 1);
  await fill(home);
  await writeFile(join(folder, 'second.md'), '# Second\n\nBananas are yellow.\n'.repeat(20_000));
  await refuseAll();
  // The index is in the database.
  if (!filesOnly) await becomes('the index does not name the cause', async () => names.test((await source())?.problem ?? ''));
  // A browser that starts now needs no space.
  await rpc('browser.stop', {});
  await rpc('browser.navigate', { url: 'about:blank' }).catch((error: unknown) => wrong.push(`a browser on a full disk: ${String(error)}`));
  for (const [file, size] of acked) if (statSync(file).size !== size) wrong.push(`${file} has changed`);

  await rm(join(home, 'filler'));
  await becomes('health is not ok again', async () => Health.parse(JSON.parse((await http({ port, path: '/health' })).text)).status === 'ok');
  await makeAll('with space again');
  await rpc('knowledge.refresh', { agentId: 'default' });
  await becomes('the second file is not indexed', async () => (await source())?.files === 2);
  wrong.push(...(await checkRecordings(daemon)));
  await rpc('browser.stop', {});
  for (const file of await filesBelow(home))
    if (/\.tmp$|\.crdownload$/.test(file)) wrong.push(`left: ${file}`);
    else if (/\/media\/md_/.test(file) && !acked.has(file.replace(/\.meta$/, ''))) wrong.push(`stored and not acknowledged: ${file}`);
  if (daemon.child.exitCode !== null) wrong.push(`the daemon ended with ${daemon.child.exitCode}`);
  const listed = await http({ port, path: '/media?limit=100', headers: bearer(token) });
  for (const file of acked.keys()) if (file.includes('/media/md_') && !listed.text.includes(basename(file))) wrong.push(`not listed: ${file}`);
  return { acked: acked.size, refused, wrong };
}

type Made = { readonly file: string } | string;

/** What stores a file: returns its path, or what was said instead. */
function makersOf(daemon: Daemon): Readonly<Record<string, () => Promise<Made>>> {
  const { home, port, token } = daemon;
  const workspace = join(home, 'workspaces/default');
  const rpc = (method: string, params: object) => rpcCall(daemon, method, params, { timeoutMs: 60_000 });
  const byTool =
    (tool: string, args: object): (() => Promise<Made>) =>
    async () => {
      const { response } = Answer.parse(await rpc('agent.execute', { message: askForCall(tool, args), sessionKey: `disk:${crypto.randomUUID()}` }));
      const path = /in the workspace: (\S+)/.exec(response)?.[1];
      return path === undefined ? response : { file: join(workspace, path) };
    };
  const save =
    "const link = document.createElement('a'); link.download = 'saved.bin'; link.href = URL.createObjectURL(new Blob([new Uint8Array(300000)])); link.click()";
  return {
    async download() {
      const { downloads } = Acted.parse(await rpc('browser.act', { request: { kind: 'evaluate', expression: `(() => { ${save} })()` } }));
      const { path, error } = downloads?.[0] ?? {};
      return path === undefined ? (error ?? 'no download') : { file: join(workspace, path) };
    },
    picture: byTool('browser', { action: 'screenshot' }),
    pdf: byTool('browser', { action: 'pdf' }),
    async speech() {
      return { file: join(workspace, Spoken.parse(await rpc('tts.synthesize', { text: 'Hello' })).filePath) };
    },
    'speech of an agent': byTool('tts_synthesize', { text: 'Hello' }),
    image: byTool('image_generate', { prompt: 'A red dot' }),
    async upload() {
      const body = silentWav(10).toString('latin1');
      const headers = { ...bearer(token), 'content-type': 'audio/wav' };
      const reply = await http({ port, method: 'POST', path: '/media?fileName=sound.wav', headers, body });
      const { mediaId, error } = Uploaded.parse(JSON.parse(reply.text));
      return mediaId === undefined ? `${reply.status} ${error}` : { file: join(home, 'media', mediaId) };
    },
  };
}

/** Each step that is shown is whole, and so is its picture. */
async function checkRecordings(daemon: Daemon): Promise<string[]> {
  const wrong: string[] = [];
  const { recordings } = Recorded.parse(await rpcCall(daemon, 'browser.recordings.list', {}));
  for (const { recordingId, steps: count } of recordings) {
    const { steps, gaps } = Steps.parse(await rpcCall(daemon, 'browser.recordings.get', { recordingId }));
    const noted = gaps.flatMap(({ from, missing }) => Array.from({ length: missing }, (_, at) => from + at));
    const numbers = [...steps.map(({ step }) => step), ...noted].toSorted((one, other) => one - other);
    if (numbers.some((number, at) => number !== at + 1)) wrong.push(`${recordingId} has a gap without a note: ${numbers.join(', ')}`);
    if (steps.length !== count) wrong.push(`${recordingId} has ${steps.length} of ${count} steps`);
    for (const { step, picture } of steps)
      if (picture)
        await rpcCall(daemon, 'browser.recordings.picture', { recordingId, step }).catch((error: unknown) =>
          wrong.push(`picture ${step}: ${String(error)}`),
        );
  }
  if (recordings.length === 0) wrong.push('nothing is recorded');
  return wrong;
}
