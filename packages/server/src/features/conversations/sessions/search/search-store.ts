import type { MessageRow } from '../api.ts';
import { isMatch, type TextMatch, toTextMatch } from '../../../../kernel/db/full-text.ts';
import { operation, query, type Tx } from '../../../../kernel/db/operation.ts';
import { part, unindexed } from './index-store.ts';
import { rankTexts } from './rank.ts';
import { makeSnippet, type Snippet } from './snippet.ts';
import type { ConversationRow, Reach } from '../store.ts';
import { createFinder, type TextQuery } from './terms.ts';

/** Maximum unindexed messages scanned one by one. */
export const maxScanned = 500;
/** Maximum counted matches. */
const maxCounted = 1_000;
/** Maximum ranked matches, newest first. */
const maxRanked = 200;
/** Characters scanned of an unindexed message, so that many long ones fit in the thread's memory. */
const scannedLength = 65_536;
/** Characters of a message used for its rank. */
const rankedLength = 8_192;

export interface MessageSearch extends Reach {
  readonly text: TextQuery;
  readonly role: MessageRow['role'] | null;
  readonly kind: ConversationRow['kind'] | null;
  readonly limit: number;
}

export interface SearchHit {
  readonly ref: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly title: string | null;
  readonly seq: number;
  readonly turnId: string;
  readonly role: 'user' | 'assistant' | 'tool';
  readonly createdAtMs: number;
  readonly snippet: Snippet;
  readonly score: number;
}

export interface SearchResult {
  readonly hits: readonly SearchHit[];
  /** Number of counted matches; `more` when there are others. */
  readonly total: number;
  readonly more: boolean;
  /** Whether more messages are unindexed than were scanned. */
  readonly behind: boolean;
}

type Found = Omit<SearchHit, 'snippet' | 'score'> & { readonly id: number; readonly head: string };

const found = ['message.id', 'ref', 'sessionKey', 'agentId', 'seq', 'turnId', 'role', 'message.createdAtMs'] as const;

const headById = query<{ id: number }, Found>(({ db, sql, p }) =>
  db
    .selectFrom('message')
    .innerJoin('conversation', 'conversation.id', 'message.conversationId')
    .select([...found, sql<string | null>`coalesce(name, title)`.as('title'), sql<string>`substr(content, 1, ${sql.lit(rankedLength)})`.as('head')])
    .where('message.id', '=', p('id')),
);
const contentById = query<{ id: number }, { content: string }>(({ db, p }) => db.selectFrom('message').select('content').where('id', '=', p('id')));

const waitingPart = query<object, { count: number }>(({ db, sql }) =>
  db
    .selectFrom(
      unindexed(db)
        .select('message.id')
        .limit(maxScanned + 1)
        .as('waiting'),
    )
    .select(sql<number>`count(*)`.as('count')),
);

/** Returns the newest unindexed messages visible to the caller; their `head` is longer than that of others. */
function readWaiting(tx: Tx, search: MessageSearch): Promise<Found[]> {
  return tx.build((db, sql) => {
    let from = unindexed(db).select([
      ...found,
      sql<string | null>`coalesce(name, title)`.as('title'),
      sql<string>`substr(content, 1, ${sql.lit(scannedLength)})`.as('head'),
    ]);
    if (search.principalId !== null) from = from.where('principalId', '=', search.principalId);
    if (search.agentIds !== null) from = from.where('agentId', 'in', search.agentIds);
    if (search.role !== null) from = from.where('role', '=', search.role);
    if (search.kind !== null) from = from.where('kind', '=', search.kind);
    return from.orderBy('message.id', 'desc').limit(maxScanned);
  });
}

const matching = query<TextMatch, { id: number }>((tools) =>
  tools.db
    .selectFrom('messageFts')
    .select('rowid as id')
    .where(isMatch(tools, 'message_fts'))
    .orderBy('rowid', 'desc')
    .limit(maxCounted + 1),
);

/** Builds the index query. Filters are tokens of the same index, so the cost depends on what the caller may see. */
function confine({ text, principalId, agentIds, role, kind }: MessageSearch): TextMatch {
  const filters = [
    ...(principalId === null ? [] : [[part.principal(principalId)]]),
    ...(agentIds === null ? [] : [agentIds.map(part.agent)]),
    ...(role === null ? [] : [[part.role(role)]]),
    ...(kind === null ? [] : [[part.kind(kind)]]),
  ];
  return toTextMatch({ phrases: text.phrases, filters });
}

/**
 * Searches the full text of messages: the newest matches of indexed and unindexed messages, best first. The cost is
 * bounded however common a word is: a thousand matches are counted, two hundred ranked.
 */
export const searchMessages = operation('sessions.search', async (tx, search: MessageSearch): Promise<SearchResult> => {
  if (search.agentIds?.length === 0) return { hits: [], total: 0, more: false, behind: false };
  const { terms } = search.text;
  const waiting = (await tx.get(waitingPart, {}))?.count ?? 0;
  const find = createFinder(terms);
  const hasAll = (text: string) => new Set(find(text).found.map(({ term }) => term)).size === terms.length;
  const fresh = waiting === 0 ? [] : (await readWaiting(tx, search)).filter(({ head }) => hasAll(head));
  const ids = await tx.all(matching, confine(search));
  const rows = fresh.slice(0, maxRanked);
  for (const { id } of ids.slice(0, maxRanked - rows.length)) {
    const row = await tx.get(headById, { id });
    if (row !== undefined) rows.push(row);
  }
  const scores = rankTexts(
    rows.map(({ head }) => head),
    terms,
  );
  const best = rows
    .map((row, index) => ({ row, score: scores[index] ?? 0 }))
    .toSorted((a, b) => b.score - a.score || b.row.id - a.row.id)
    .slice(0, search.limit);
  const hits: SearchHit[] = [];
  for (const { row, score } of best) {
    const { id, head, ...hit } = row;
    // A match that is not in the head is after it.
    const content = score > 0 ? head : ((await tx.get(contentById, { id }))?.content ?? '');
    hits.push({ ...hit, snippet: makeSnippet(content, terms), score });
  }
  const total = fresh.length + ids.length;
  return { hits, total: Math.min(total, maxCounted), more: total > maxCounted, behind: waiting > maxScanned };
});

export const searchOperations = [searchMessages];
