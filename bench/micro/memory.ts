// G13: searches over many memories, by keyword and by meaning: how long they take, how many of the nearest the vector lane
// finds against an exact comparison, and how long the event loop is held while the index is built and searched.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { storeMemory } from '../../packages/server/src/features/knowledge/memory/entries/browse-store.ts';
import { createMemory } from '../../packages/server/src/features/knowledge/memory/memory.ts';
import { defaultCalibration } from '../../packages/server/src/features/knowledge/memory/embeddings/relevance.ts';
import { searchMemories } from '../../packages/server/src/features/knowledge/memory/recall/search-store.ts';
import { createCorpus, denseVector, embedWith } from '../../packages/server/src/features/knowledge/memory/testing/corpus.ts';
import { dot, normalized } from '../../packages/server/src/features/knowledge/memory/embeddings/index/vector-signs.ts';
import { systemClock } from '../../packages/server/src/kernel/clock.ts';
import { openDb } from '../../packages/server/src/kernel/db/sqlite/open-db.ts';
import { createEventBus } from '../../packages/server/src/kernel/event-bus.ts';
import { silentLog } from '../../packages/server/src/kernel/log.ts';
import { hashingVector } from '../../packages/server/src/llm/hashing-embedder.ts';
import { percentile } from '../lib/stats.ts';

const dimensions = 384;
const agentId = 'default';
const principalId = 'token:bench';

export interface MemoryFigures {
  readonly entries: number;
  readonly vectors: 'dense' | 'hashing';
  /** Milliseconds of a search through the whole of it: embedding of the query, both lanes, rows. */
  readonly searchP50: number;
  readonly searchP95: number;
  /** The same while the index of vectors is being built after a start. */
  readonly buildingP95: number;
  readonly buildMs: number;
  /** Share of the ten nearest by exact comparison that the vector lane finds. */
  readonly recallAt10: number;
  /** Longest stretch for which the event loop of the main thread was held, in milliseconds. */
  readonly loopHeldMs: number;
  readonly loopP99Ms: number;
  /** Growth of the process by building the index. */
  readonly indexMb: number;
}

/**
 * Processor time that this thread takes between two timers of a millisecond each: no turn of its event loop worked longer.
 * What other processes take from it is not counted.
 */
function watchLoop(): { readonly stop: () => number[] } {
  const held: number[] = [];
  let before = process.threadCpuUsage();
  let timer = setTimeout(tick, 1);
  function tick(): void {
    const now = process.threadCpuUsage();
    held.push((now.user + now.system - before.user - before.system) / 1_000);
    before = now;
    timer = setTimeout(tick, 1);
  }
  return {
    stop() {
      clearTimeout(timer);
      return held.toSorted((a, b) => a - b);
    },
  };
}

export async function measureMemory(options: {
  readonly entries: number;
  readonly queries: number;
  readonly vectors: MemoryFigures['vectors'];
}): Promise<MemoryFigures> {
  const { entries, queries, vectors } = options;
  const vectorOf = vectors === 'dense' ? (text: string) => denseVector(text, dimensions) : (text: string) => hashingVector(text, dimensions);
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
  const open = () => openDb({ dataDir: dir, clock: systemClock, log: silentLog, maxPending: 100_000 });
  const memoryOn = (db: Awaited<ReturnType<typeof open>>) =>
    createMemory({
      db,
      bus: createEventBus(() => {}),
      clock: systemClock,
      log: silentLog,
      agents: {
        defaultId: agentId,
        list: () => [],
        find: () => undefined,
        usable: () => {
          throw new Error('not used');
        },
      },
      embedder: { provider: 'bench', model: vectors },
      embed: embedWith(vectorOf),
    });
  const corpus = createCorpus(1);
  const texts = Array.from({ length: entries }, corpus.text);
  const questions = Array.from({ length: queries }, corpus.question);
  const signal = new AbortController().signal;
  try {
    {
      await using db = await open();
      await fill(db, texts);
      await using memory = await memoryOn(db);
      memory.stored(agentId);
      await untilEmbedded(memory);
    }
    await using db = await open();
    await using memory = await memoryOn(db);
    const search = async (text: string): Promise<number> => {
      const before = performance.now();
      await memory.api.search({ text, agentId, principalId, limit: 10, keepVector: false, signal });
      return performance.now() - before;
    };
    const rssBefore = process.memoryUsage().rss;
    const building = watchLoop();
    const built = performance.now();
    const whileBuilding: number[] = [];
    for (let complete = false; !complete;) {
      whileBuilding.push(await search(questions[whileBuilding.length % queries] ?? ''));
      ({ complete } = await vectorLane(db, vectorOf, vectors, questions[0] ?? ''));
    }
    const buildMs = performance.now() - built;
    const indexMb = (process.memoryUsage().rss - rssBefore) / 1e6;
    const lateBuilding = building.stop();
    const watching = watchLoop();
    const times: number[] = [];
    // Another question each time: a cached vector would hide the embedding.
    for (const question of questions) times.push(await search(`${question} again`));
    const late = watching.stop();
    const found: number[][] = [];
    for (const question of questions.slice(0, 100)) found.push((await vectorLane(db, vectorOf, vectors, question)).seqs);
    const nearest = exactNearest(texts, questions.slice(0, 100), vectorOf);
    const hits = nearest.map((exact, index) => exact.filter((seq) => found[index]?.includes(seq)).length / 10);
    times.sort((a, b) => a - b);
    const all = [...lateBuilding, ...late].sort((a, b) => a - b);
    return {
      entries,
      vectors,
      searchP50: percentile(times, 0.5),
      searchP95: percentile(times, 0.95),
      buildingP95: percentile(
        whileBuilding.toSorted((a, b) => a - b),
        0.95,
      ),
      buildMs,
      recallAt10: hits.reduce((sum, share) => sum + share, 0) / hits.length,
      loopHeldMs: all.at(-1) ?? 0,
      loopP99Ms: percentile(all, 0.99),
      indexMb,
    };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function fill(db: Awaited<ReturnType<typeof openDb>>, texts: readonly string[]): Promise<void> {
  for (let from = 0; from < texts.length; from += 1_000) {
    await Promise.all(
      texts.slice(from, from + 1_000).map((content, index) =>
        db.write(storeMemory, {
          memory: {
            id: `00000000-0000-4000-8000-${String(from + index).padStart(12, '0')}`,
            agentId,
            principalId,
            content,
            memoryType: 'semantic',
            trustLevel: 'learned',
            taintLevel: 'clean',
            sourceWho: 'bench',
            sourceChannel: null,
            conversationRef: null,
            sessionKey: null,
            tags: '["auto-review"]',
            createdAtMs: from + index,
            expiresAtMs: null,
            confidence: null,
            pinned: 0,
            cites: [],
          },
          audit: undefined,
        }),
      ),
    );
  }
}

async function untilEmbedded(memory: Awaited<ReturnType<typeof createMemory>>): Promise<void> {
  const call = {
    identity: { principalId, tokenId: 'bench', scopes: ['admin' as const] },
    traceId: '',
    requestId: '',
    signal: new AbortController().signal,
    transport: 'process' as const,
  };
  for (;;) {
    const { pendingEntries } = await memory.methods['memory.embeddingCache']({}, call);
    if (pendingEntries === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** The vector lane alone: a query without keywords. */
async function vectorLane(
  db: Awaited<ReturnType<typeof openDb>>,
  vectorOf: (text: string) => Float32Array,
  vectors: string,
  question: string,
): Promise<{ readonly seqs: number[]; readonly complete: boolean }> {
  const { found, complete } = await db.search(searchMemories, {
    filter: { agentId, principalId, types: undefined, trust: undefined, tags: [], includeDerivedSources: true, atMs: 0 },
    asked: { words: [], weight: { says: 0, rare: 0 } },
    vector: { fingerprint: `bench/${vectors}/${dimensions}`, values: normalized(vectorOf(question)), calibration: defaultCalibration },
    limit: 10,
    minScore: 0,
  });
  return { seqs: found.map(({ row }) => row.seq), complete };
}

/** Positions of the ten nearest of each question: rows are numbered from 1 in the order of storing. */
function exactNearest(texts: readonly string[], questions: readonly string[], vectorOf: (text: string) => Float32Array): number[][] {
  const wanted = questions.map((question) => normalized(vectorOf(question)));
  const best = wanted.map((): { seq: number; similarity: number }[] => []);
  for (const [index, text] of texts.entries()) {
    const vector = normalized(vectorOf(text));
    for (const [at, query] of wanted.entries()) {
      const similarity = dot(query, vector);
      const list = best[at] ?? [];
      if (list.length === 10 && similarity <= (list[9]?.similarity ?? 0)) continue;
      list.push({ seq: index + 1, similarity });
      list.sort((a, b) => b.similarity - a.similarity);
      list.length = Math.min(list.length, 10);
    }
  }
  return best.map((list) => list.map(({ seq }) => seq));
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      entries: { type: 'string', default: '100000' },
      queries: { type: 'string', default: '400' },
      vectors: { type: 'string', default: 'dense,hashing' },
    },
  });
  const figures: MemoryFigures[] = [];
  for (const vectors of ['dense', 'hashing'] as const) {
    if (!values.vectors.split(',').includes(vectors)) continue;
    const done = await measureMemory({ entries: Number(values.entries), queries: Number(values.queries), vectors });
    figures.push(done);
    console.log(
      `${done.entries} memories, ${vectors}: search p50 ${done.searchP50.toFixed(1)} ms, p95 ${done.searchP95.toFixed(1)} ms (while the index is built ${done.buildingP95.toFixed(1)} ms), ` +
        `recall@10 ${done.recallAt10.toFixed(3)}, event loop held ${done.loopHeldMs.toFixed(1)} ms at most (p99 ${done.loopP99Ms.toFixed(2)} ms), index built in ${done.buildMs.toFixed(0)} ms, ${done.indexMb.toFixed(0)} MB`,
    );
  }
  console.log(JSON.stringify({ figures }));
}
