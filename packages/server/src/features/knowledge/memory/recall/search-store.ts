import { isMatch, type TextMatch, toTextMatch } from '../../../../kernel/db/full-text.ts';
import { jsonSql } from '../../../../kernel/db/json-sql.ts';
import { operation, query, type Tx, raw } from '../../../../kernel/db/operation.ts';
import type { MemoryExplanation } from '../api.ts';
import { fuse } from './fuse.ts';
import { advanceIndex, buildIndex } from '../embeddings/index/index-store.ts';
import { type Calibration, relevance, textRelevance, vectorRelevance } from '../embeddings/relevance.ts';
import { allowed, hasTags, matchOf, type SearchFilter } from './search-filter.ts';
import { type CitingRow, readRows } from '../entries/store.ts';
import type { WordWeight } from './common-terms.ts';
import { parseTerms, type QueryTerm, type QueryTerms } from './text-query.ts';
import { dot, rotate, signLength, toFloats } from '../embeddings/index/vector-signs.ts';

export interface SearchInput {
  readonly filter: SearchFilter;
  /** Letters and digits only; none: no text lane. */
  readonly asked: QueryTerms;
  /** Unit vector of the query, and the embedder that made it; absent: no vector lane. */
  readonly vector?: { readonly fingerprint: string; readonly values: Float32Array; readonly calibration: Calibration };
  readonly limit: number;
  /** Minimum relevance of a result. */
  readonly minScore: number;
}

export interface Found {
  readonly found: readonly FoundRow[];
  /** False while the index of vectors is being built: entries missing in it are found only by terms. */
  readonly complete: boolean;
}

export interface FoundRow {
  readonly row: CitingRow;
  /** Relevance, 0 to 1. */
  readonly score: number;
  readonly explain: MemoryExplanation;
}

/** Minimum length of each lane before the fusion. */
const laneLength = 50;
/** Matches that are read of one term, newest first, and of all terms together. */
const rowsPerWord = 500;
const rowsPerQuery = 1_500;
/** Entries with all of the terms, newest first: the newest matches of common terms alone would hardly overlap. */
const rowsOfAll = 200;
/** Matches of all owners are counted up to this, to read the rarest terms first. */
const countedMatches = 20_000;
/** Entries whose vectors are compared exactly, at least and per result. */
const rescored = 400;
const rescoredPerResult = 40;
const maxRescored = 2_000;

const countMatches = query<TextMatch, { matches: number }>((tools) => {
  const { db, sql } = tools;
  return db
    .selectFrom(db.selectFrom('memoryFts').select(sql.lit(1).as('one')).where(isMatch(tools, 'memory_fts')).limit(countedMatches).as('found'))
    .select(sql<number>`count(*)`.as('matches'));
});
const lastSeq = query<object, { seq: number }>(({ db, sql }) => db.selectFrom('memory').select(sql<number>`coalesce(max(seq), 1)`.as('seq')));

interface TextHit {
  readonly seq: number;
  /** Weight of the query terms that the entry contains. */
  readonly shared: WordWeight;
}

/**
 * Returns entries with some of the terms, best first: rare terms and short entries count for more. Like
 * BM25, without the number of occurrences: the built-in function reads every match of every term, and those of common
 * terms are half of all entries. Here the rarest terms come first, and each reads a bounded number of rows.
 */
async function textLane(tx: Tx, { asked: { words }, filter }: SearchInput, count: number): Promise<TextHit[]> {
  const counted: (QueryTerm & { readonly matches: number })[] = [];
  for (const one of words) {
    const matches = (await tx.get(countMatches, toTextMatch({ phrases: [one.word], filters: [] })))?.matches ?? 0;
    if (matches > 0) counted.push({ ...one, matches });
  }
  counted.sort((a, b) => a.matches - b.matches);
  const entries = (await tx.get(lastSeq, {}))?.seq ?? 1;
  const found = new Map<number, { weight: number; shared: WordWeight; readonly bytes: number }>();
  let left = rowsPerQuery;
  let ofAll = 0;
  for (const { word, says, rare } of counted) {
    if (left <= 0) break;
    const limit = Math.min(rowsPerWord, left);
    const rows = await matchingRows(tx, filter, [word], limit);
    left -= rows.length;
    // Counted over what the caller may see: positions of its entries must not reveal how often others have a term.
    const span = rows.length < limit ? entries : entries - (rows.at(-1)?.seq ?? 1) + 1;
    const within = (rows.length * entries) / span;
    const weight = Math.log(1 + (Math.max(entries - within, 0) + 0.5) / (within + 0.5));
    ofAll += weight;
    for (const { seq, bytes } of rows) {
      const before = found.get(seq);
      if (before === undefined) found.set(seq, { weight, shared: { says, rare }, bytes });
      else {
        before.weight += weight;
        before.shared = plus(before.shared, { says, rare });
      }
    }
  }
  if (counted.length > 1) {
    const all = counted.map(({ word }) => word);
    const shared = counted.reduce<WordWeight>(plus, { says: 0, rare: 0 });
    for (const { seq, bytes } of await matchingRows(tx, filter, all, rowsOfAll)) found.set(seq, { weight: ofAll, shared, bytes });
  }
  let bytes = 0;
  for (const entry of found.values()) bytes += entry.bytes;
  const average = bytes / found.size;
  return [...found]
    .map(([seq, { weight, shared, bytes: size }]) => ({ seq, shared, score: weight / (1 + 0.3 * Math.min(8, size / average)) }))
    .sort((a, b) => b.score - a.score || b.seq - a.seq)
    .slice(0, count);
}

const plus = (a: WordWeight, b: WordWeight): WordWeight => ({ says: a.says + b.says, rare: a.rare + b.rare });

function matchingRows(tx: Tx, filter: SearchFilter, words: readonly string[], limit: number): Promise<{ seq: number; bytes: number }[]> {
  const match = matchOf(filter, words);
  return tx.build((db, sql, dialect) =>
    raw(
      db, // In SQLite a cross join keeps its order: the full text index leads.
      sql<{ seq: number; bytes: number }>`
        SELECT memory.seq, octet_length(memory.content) AS bytes FROM memory_fts ${sql.raw(dialect === 'sqlite' ? 'CROSS JOIN' : 'JOIN')} memory
        ON memory.seq = memory_fts.rowid WHERE ${isMatch({ sql, dialect, p: (name) => sql`${match[name]}` }, 'memory_fts')}
        AND ${allowed(sql, dialect, filter)} ORDER BY memory_fts.rowid DESC LIMIT ${limit}`,
    ),
  );
}

/** Returns entries near the query, nearest first: those whose signs differ least, in the order of their exact cosines. */
async function vectorLane(tx: Tx, { filter, limit }: SearchInput, vector: NonNullable<SearchInput['vector']>, count: number) {
  const { values, fingerprint } = vector;
  const { index, complete } = await advanceIndex(tx, { fingerprint, words: signLength(values.length) });
  const rotated = rotate(values);
  // Hashed tags have false positives: then more are read.
  for (let candidates = Math.min(maxRescored, Math.max(rescored, limit * rescoredPerResult)); ; candidates *= 4) {
    const near = index.nearest(rotated, filter, candidates);
    const scored = (await vectorsOf(tx, near, filter, fingerprint))
      .map(({ seq, vector: bytes }) => ({ seq, similarity: dot(values, toFloats(bytes)) }))
      .sort((a, b) => b.similarity - a.similarity || b.seq - a.seq);
    if (scored.length >= count || near.length < candidates) return { ranked: scored.slice(0, count), complete };
  }
}

/** The index is of the same snapshot, so only its imprecise part is verified again: the tags. */
function vectorsOf(tx: Tx, seqs: readonly number[], { tags }: SearchFilter, fingerprint: string): Promise<{ seq: number; vector: Uint8Array }[]> {
  const rows = JSON.stringify(seqs);
  return tx.build((db, sql, dialect) => {
    const join = sql.raw(dialect === 'sqlite' ? 'CROSS JOIN' : 'JOIN');
    return raw(
      db,
      sql<{ seq: number; vector: Uint8Array }>`
        SELECT memory_vector.seq, memory_vector.vector FROM ${jsonSql(sql, dialect).integers(sql<string>`${rows}`)} AS wanted
        ${join} memory_vector ON memory_vector.seq = wanted.value
        WHERE memory_vector.fingerprint = ${fingerprint}${
          tags.length === 0 ? sql`` : sql` AND EXISTS (SELECT 1 FROM memory WHERE memory.seq = memory_vector.seq AND ${hasTags(sql, dialect, tags)})`
        }`,
    );
  });
}

/**
 * Runs in the search thread: both lanes, in the order of their fused ranks, each entry with its relevance. Excluded
 * entries do not occupy positions in a lane.
 */
export const searchMemories = operation('memory.search', async (tx, input: SearchInput): Promise<Found> => {
  const count = Math.max(laneLength, input.limit * 2);
  const text = await textLane(tx, input, count);
  const vector = input.vector === undefined ? undefined : await vectorLane(tx, input, input.vector, count);
  const ranked = fuse({ text: text.map(({ seq }) => seq), vector: vector?.ranked });
  const rows = new Map(
    (
      await readRows(
        tx,
        ranked.map(({ seq }) => seq),
      )
    ).map((row) => [row.seq, row]),
  );
  const shared = new Map(text.map((hit) => [hit.seq, hit.shared]));
  const { words, weight: asked } = input.asked;
  const isOneWord = words.filter(({ says }) => says > 0).length === 1;
  const found: FoundRow[] = [];
  for (const { seq, explain } of ranked) {
    if (found.length === input.limit) break;
    const row = rows.get(seq);
    if (row === undefined) continue;
    const both = shared.get(seq);
    const byText = both === undefined ? 0 : textRelevance({ shared: both, asked, held: parseTerms(row.content).weight, isOneWord });
    const byVector =
      input.vector === undefined || explain.vectorSimilarity === undefined ? 0 : vectorRelevance(explain.vectorSimilarity, input.vector.calibration);
    const score = relevance(byText, byVector);
    if (score >= input.minScore) found.push({ row, score, explain });
  }
  return { found, complete: vector?.complete ?? true };
});

export const memorySearchOperations = [searchMemories, buildIndex];
