import { isMatch, type TextMatch, toTextMatch } from '../../../../kernel/db/full-text.ts';
import { operation, query } from '../../../../kernel/db/operation.ts';

export interface Excerpt {
  readonly seq: number;
  readonly role: 'user' | 'assistant' | 'tool';
  readonly createdAtMs: number;
  readonly text: string;
}

/** Maximum matches per term; a more frequent term says little about where to look. */
const maxMatches = 300;
/** Score of a term that a third of the messages contain. */
const minScore = 1;
/** Minimum score as a share of the best score. */
const minShare = 0.4;

/** Matches within one conversation through `part`, see the index migration. Ranking in the index would scan all conversations. */
const matching = query<TextMatch & { first: number; last: number; limit: number }, { id: number }>((tools) =>
  tools.db
    .selectFrom('messageFts')
    .select('rowid as id')
    .where(isMatch(tools, 'message_fts'))
    .where('rowid', '>=', tools.p('first'))
    .where('rowid', '<=', tools.p('last'))
    .limit(tools.p('limit')),
);

/** Returns the message id at a position; ids grow with positions. */
const idAt = query<{ conversationId: number; seq: number }, { id: number }>(({ db, p }) =>
  db.selectFrom('message').select('id').where('conversationId', '=', p('conversationId')).where('seq', '=', p('seq')),
);

const messageById = query<{ id: number }, Omit<Excerpt, 'text'> & { readonly content: string }>(({ db, p }) =>
  db.selectFrom('message').select(['seq', 'role', 'content', 'createdAtMs']).where('id', '=', p('id')),
);

export interface ExcerptQuery {
  readonly conversationId: number;
  readonly from: number;
  readonly to: number;
  /** Terms of letters and digits only. */
  readonly terms: readonly string[];
  readonly limit: number;
  readonly length: number;
}

/** Returns excerpts of the best matching messages from `from` to `to` of one conversation, best first; rare terms weigh more. */
export const findExcerpts = operation('context.excerpts', async (tx, input: ExcerptQuery): Promise<Excerpt[]> => {
  const { conversationId, from, to, terms, limit, length } = input;
  const first = await tx.get(idAt, { conversationId, seq: from });
  const last = await tx.get(idAt, { conversationId, seq: to });
  if (first === undefined || last === undefined) return [];
  const scores = new Map<number, number>();
  for (const term of terms) {
    const match = toTextMatch({ phrases: [term], filters: [[`c${conversationId}`]] });
    const rows = await tx.all(matching, { ...match, first: first.id, last: last.id, limit: maxMatches + 1 });
    if (rows.length > maxMatches) continue;
    const weight = Math.log((to - from + 2) / (rows.length + 0.5));
    for (const { id } of rows) scores.set(id, (scores.get(id) ?? 0) + weight);
  }
  const ranked = [...scores].toSorted((a, b) => b[1] - a[1] || b[0] - a[0]).slice(0, limit);
  const least = Math.max(minScore, (ranked[0]?.[1] ?? 0) * minShare);
  const found: Excerpt[] = [];
  for (const [id, score] of ranked) {
    const row = score < least ? undefined : await tx.get(messageById, { id });
    if (row !== undefined) found.push({ seq: row.seq, role: row.role, createdAtMs: row.createdAtMs, text: excerpt(row.content, terms, length) });
  }
  return found;
});

const maxHits = 200;

/** Returns the excerpt of a text that contains the most terms. */
function excerpt(content: string, terms: readonly string[], length: number): string {
  if (content.length <= length) return content;
  const text = content.toLowerCase();
  const hits: { readonly at: number; readonly term: number }[] = [];
  for (const [term, whole] of terms.entries()) {
    // The index stems words.
    const stem = whole.slice(0, Math.max(3, whole.length - 2));
    for (let at = text.indexOf(stem), count = 0; at !== -1 && count < maxHits; at = text.indexOf(stem, at + stem.length), count += 1)
      hits.push({ at, term });
  }
  hits.sort((a, b) => a.at - b.at);
  let begin = 0;
  let most = 0;
  for (const [index, { at }] of hits.entries()) {
    const near = new Set<number>();
    for (let next = index; next < hits.length && (hits[next]?.at ?? 0) < at + length * 0.7; next += 1) near.add(hits[next]?.term ?? 0);
    if (near.size <= most) continue;
    most = near.size;
    begin = at;
  }
  const from = Math.max(0, Math.min(begin - Math.floor(length * 0.25), content.length - length));
  const cut = content.slice(from, from + length).toWellFormed();
  return `${from > 0 ? '… ' : ''}${cut}${from + length < content.length ? ' …' : ''}`;
}

export const recallOperations = [findExcerpts];
