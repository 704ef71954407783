import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type Daemon, logOf, pause, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { readMain } from './lib/main-thread.ts';
import { proofConfig } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';

/** Proves that a large knowledge folder is indexed and followed, in its subfolders too, without holding the event loop or much memory. */
export interface FolderReport {
  readonly files: number;
  readonly folders: number;
  readonly indexedMs: number;
  /** A comparison in which nothing has changed. */
  readonly comparedMs: number;
  /** Time from a change in the deepest folder until the index has it. */
  readonly noticedMs: number;
  /** Longest work of the main thread at a time. */
  readonly longestMs: number;
  readonly peakMb: number;
  readonly wrong: readonly string[];
}

export interface FolderOptions {
  readonly files: number;
  /** Megabytes that the daemon may take; more where other work keeps it from collecting garbage. */
  readonly maxMb?: number;
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}

const maxMainMs = 50;
/** Longer for folders whose scan takes seconds. */
const noticedWithin = (files: number) => (files > 1_000 ? 30_000 : 10_000);
const filesPerFolder = 20;

const Sources = z.looseObject({
  sources: z.array(z.looseObject({ name: z.string(), state: z.string(), checkedAt: z.number().nullable(), files: z.int(), unwatched: z.int() })),
});
const Found = z.looseObject({ passages: z.array(z.looseObject({ path: z.string() })) });

export async function proveKnowledgeFolder({ files, maxMb = 400, broken, progress }: FolderOptions): Promise<FolderReport> {
  const provider = await startFakeProvider({ journal: 0, deltas: 1 });
  const home = await makeHome();
  const base = mkdtempSync(join(tmpdir(), 'gatehouse-folder-'));
  const warmFolder = mkdtempSync(join(tmpdir(), 'gatehouse-warm-'));
  for (let at = 0; at < 5; at += 1) writeFileSync(join(warmFolder, `${at}.md`), `# Warm ${at}\n`);
  const folders = Math.ceil(files / filesPerFolder);
  const placeOf = (folder: number) => `part-${folder % 10}/chapter-${folder}`;
  for (let at = 0; at < files; at += 1) {
    const folder = join(base, placeOf(Math.floor(at / filesPerFolder)));
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${at}.md`), `# Page ${at}\n\n${`Valve ${at} is opened clockwise before pump ${at % 97} starts. `.repeat(8)}\n`);
  }
  const wrong: string[] = [];
  let daemon: Daemon | undefined;
  try {
    const source = { name: 'manual', folder: base, maxFiles: 50_000, everyMinutes: 10_080 };
    // What is loaded for the first document is compiled on the main thread.
    const warm = { name: 'warm', folder: warmFolder };
    const agents = { default: { model: 'local/test-model', knowledge: { sources: [warm, source] } } };
    await writeConfig(home, proofConfig(provider.url, { agents }));
    daemon = await startDaemon({
      home,
      port: await freePort(),
      readyTimeoutMs: 100_000,
      hooks: [join(import.meta.dirname, 'lib/main-cpu-watch.ts')],
      ...(broken !== undefined && { broken }),
    });
    const running = daemon;
    const sourceOf = async (name = 'manual') => Sources.parse(await rpcCall(running, 'knowledge.list', {})).sources.find((one) => one.name === name);
    /** Waits until a comparison later than `since` has ended. */
    const compared = async (since: number | null, name?: string): Promise<void> => {
      for (const until = performance.now() + 30 * 60_000; performance.now() < until; await pause(100)) {
        const now = await sourceOf(name);
        if (now?.state === 'failed') throw new Error(`the folder could not be indexed\n${logOf(running)}`);
        if (now?.state === 'ready' && now.checkedAt !== since) return;
      }
      throw new Error('the folder was not indexed within half an hour');
    };
    await compared(null, 'warm');
    await readMain(running);
    const startedAt = performance.now();
    await compared(null);
    const indexedMs = performance.now() - startedAt;
    const first = await sourceOf();
    if (first?.files !== files) wrong.push(`${first?.files ?? 0} of ${files} files were indexed`);
    if (first?.unwatched !== 0) wrong.push(`${first?.unwatched ?? 0} folders are not watched`);
    progress?.(`indexed after ${Math.round(indexedMs / 1_000)} s`);
    const indexing = await readMain(running);
    const compare = async (): Promise<number> => {
      const before = (await sourceOf())?.checkedAt ?? null;
      const sinceMs = performance.now();
      await rpcCall(running, 'knowledge.refresh', { agentId: 'default', source: 'manual' });
      await compared(before);
      return performance.now() - sinceMs;
    };
    // One more may follow the first on its own: what changed before a folder was watched.
    await compare();
    const comparedMs = await compare();
    writeFileSync(join(base, placeOf(folders - 1), 'new.md'), 'The lantern hangs in the northern tower.\n');
    const changedAt = performance.now();
    const isFound = async () =>
      Found.parse(await rpcCall(running, 'knowledge.search', { query: 'lantern northern tower', limit: 1 })).passages.some(({ path }) =>
        path.endsWith('/new.md'),
      );
    const maxNoticedMs = noticedWithin(files);
    let found = false;
    while (!found && performance.now() - changedAt < maxNoticedMs) {
      found = await isFound();
      if (!found) await pause(100);
    }
    const noticedMs = performance.now() - changedAt;
    if (!found) wrong.push(`a change in a subfolder was not in the index after ${maxNoticedMs} ms`);
    const { longestMs: later, peakMb } = await readMain(running);
    const longestMs = Math.max(indexing.longestMs, later);
    if (longestMs > maxMainMs) wrong.push(`the main thread worked ${Math.round(longestMs)} ms at a time`);
    if (peakMb > maxMb) wrong.push(`the daemon had ${Math.round(peakMb)} MB`);
    const rounded = { indexedMs, comparedMs, noticedMs, longestMs, peakMb };
    for (const [name, value] of Object.entries(rounded)) progress?.(`${name}: ${Math.round(value)}`);
    return {
      files,
      folders,
      indexedMs: Math.round(indexedMs),
      comparedMs: Math.round(comparedMs),
      noticedMs: Math.round(noticedMs),
      longestMs: Math.round(longestMs),
      peakMb: Math.round(peakMb),
      wrong,
    };
  } finally {
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
    for (const folder of [base, warmFolder]) rmSync(folder, { recursive: true, force: true });
  }
}
