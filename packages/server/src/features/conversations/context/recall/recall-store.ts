import { operation, query } from '../../../../kernel/db/operation.ts';

export interface Excerpt {
  readonly seq: number;
  readonly role: 'user' | 'assistant' | 'tool';
  readonly createdAtMs: number;
  readonly text: string;
}

/** Messages with one word; a word that more of them have says little about where to look. */
const mostMatches = 300;
/** Of a word that a third of the messages have. */
const leastScore = 1;
/** Of the score of the best. */
const leastShare = 0.4;

/** `part` holds the conversation, see the migration of the index. Neither ranked nor counted by the index itself, which would walk through the messages of everybody. */
const matching = query<{ match: string; first: number; last: number; limit: number }, { id: number }>(({ db, sql, p }) =>
  db
    .selectFrom('message_fts')
    .select('rowid as id')
    .where(sql<boolean>`message_fts MATCH ${p('match')}`)
    .where('rowid', '>=', p('first'))
    .where('rowid', '<=', p('last'))
    .limit(p('limit')),
);

/** Ids of messages grow with their place in the conversation. */
const idAt = query<{ conversationId: number; seq: number }, { id: number }>(({ db, p }) =>
  db.selectFrom('message').select('id').where('conversation_id', '=', p('conversationId')).where('seq', '=', p('seq')),
);

const messageById = query<{ id: number }, Omit<Excerpt, 'text'> & { readonly content: string }>(({ db, p }) =>
  db.selectFrom('message').select(['seq', 'role', 'content', 'created_at_ms as createdAtMs']).where('id', '=', p('id')),
);

export interface ExcerptQuery {
  readonly conversationId: number;
  readonly from: number;
  readonly to: number;
  /** Of letters and digits alone. */
  readonly words: readonly string[];
  readonly limit: number;
  readonly length: number;
}

/** Excerpts of the messages from `from` to `to` of one conversation that have most of the words, rare ones above all; the best first. */
export const findExcerpts = operation('context.excerpts', async (tx, input: ExcerptQuery): Promise<Excerpt[]> => {
  const { conversationId, from, to, words, limit, length } = input;
  const first = await tx.get(idAt, { conversationId, seq: from });
  const last = await tx.get(idAt, { conversationId, seq: to });
  if (first === undefined || last === undefined) return [];
  const scores = new Map<number, number>();
  for (const word of words) {
    const match = `part : "c${conversationId}" AND body : "${word}"`;
    const rows = await tx.all(matching, { match, first: first.id, last: last.id, limit: mostMatches + 1 });
    if (rows.length > mostMatches) continue;
    const weight = Math.log((to - from + 2) / (rows.length + 0.5));
    for (const { id } of rows) scores.set(id, (scores.get(id) ?? 0) + weight);
  }
  const ranked = [...scores].toSorted((a, b) => b[1] - a[1] || b[0] - a[0]).slice(0, limit);
  const least = Math.max(leastScore, (ranked[0]?.[1] ?? 0) * leastShare);
  const found: Excerpt[] = [];
  for (const [id, score] of ranked) {
    const row = score < least ? undefined : await tx.get(messageById, { id });
    if (row !== undefined) found.push({ seq: row.seq, role: row.role, createdAtMs: row.createdAtMs, text: excerpt(row.content, words, length) });
  }
  return found;
});

const mostHits = 200;

/** The stretch of a text that has most of the words. */
function excerpt(content: string, words: readonly string[], length: number): string {
  if (content.length <= length) return content;
  const text = content.toLowerCase();
  const hits: { readonly at: number; readonly word: number }[] = [];
  for (const [word, whole] of words.entries()) {
    // The index folds endings together.
    const stem = whole.slice(0, Math.max(3, whole.length - 2));
    for (let at = text.indexOf(stem), count = 0; at !== -1 && count < mostHits; at = text.indexOf(stem, at + stem.length), count += 1)
      hits.push({ at, word });
  }
  hits.sort((a, b) => a.at - b.at);
  let begin = 0;
  let most = 0;
  for (const [index, { at }] of hits.entries()) {
    const near = new Set<number>();
    for (let next = index; next < hits.length && (hits[next]?.at ?? 0) < at + length * 0.7; next += 1) near.add(hits[next]?.word ?? 0);
    if (near.size <= most) continue;
    most = near.size;
    begin = at;
  }
  const from = Math.max(0, Math.min(begin - Math.floor(length * 0.25), content.length - length));
  const cut = content.slice(from, from + length).toWellFormed();
  return `${from > 0 ? '… ' : ''}${cut}${from + length < content.length ? ' …' : ''}`;
}

export const recallOperations = [findExcerpts];
