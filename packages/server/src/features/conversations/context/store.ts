import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import { countTokens } from '../../../llm/count-tokens.ts';
import { holdsTaint } from '../../../runtime/fence.ts';
import { countMessage } from '../../../runtime/message-tokens.ts';
import { toModelMessage } from '../../../runtime/stored-message.ts';
import type { MessageRow } from '../sessions/api.ts';
import { readBackward, readForward } from './message-pages.ts';
import { renderTranscript, truncate } from './summaries/render.ts';

export interface SummaryNode {
  readonly id: string;
  readonly kind: 'leaf' | 'condensed';
  /** 0 for leaves, else one more than the children. */
  readonly depth: number;
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly tokenCount: number;
  readonly content: string;
  /** `wrapped`: made from messages with untrusted text or attachments. */
  readonly taint: 'clean' | 'wrapped';
  /** `provider/model`, or `truncation`. */
  readonly model: string;
  /** 1 when it only fills the gap until a summary of its messages is ready. */
  readonly stopgap: 0 | 1;
  readonly parentId: string | null;
  readonly createdAtMs: number;
}

/** Returns `wrapped` when any of the messages contains untrusted text. */
export function taintOf(rows: readonly Pick<MessageRow, 'content' | 'attachmentsJson'>[]): SummaryNode['taint'] {
  return rows.some((row) => row.attachmentsJson !== null || holdsTaint(row.content)) ? 'wrapped' : 'clean';
}

/** A message with its token count, computed when it is read. */
export interface CountedRow extends MessageRow {
  readonly tokens: number;
}

/** The state of a conversation that its context depends on. */
export interface Head {
  readonly conversationId: number;
  readonly lastSeq: number;
  /** Messages up to here are history that the model no longer sees; see `session.reset`. */
  readonly floor: number;
  /** Messages up to here are represented by the prefix; never below the floor. */
  readonly cutSeq: number;
  /** The text that represents them, stable across turns. */
  readonly prefix: string;
  readonly prefixTokens: number;
  /** Whether a stopgap in the prefix is to be replaced by a summary. */
  readonly behind: boolean;
  /** Whether turns since the last reset have read untrusted text. */
  readonly tainted: boolean;
}

const headByRef = query<
  { ref: string },
  {
    conversationId: number;
    lastSeq: number;
    floor: number;
    cutSeq: number | null;
    prefix: string | null;
    prefixTokens: number | null;
    behind: number | null;
    taint: number;
  }
>(({ db, p }) =>
  db
    .selectFrom('conversation')
    .leftJoin('contextState', 'contextState.conversationId', 'conversation.id')
    .select([
      'conversation.id as conversationId',
      'conversation.lastSeq',
      'conversation.modelSeqFloor as floor',
      'contextState.cutSeq',
      'contextState.prefix',
      'contextState.prefixTokens',
      'contextState.behind',
      'conversation.taint as taint',
    ])
    .where('conversation.ref', '=', p('ref')),
);

async function readHead(tx: Tx, ref: string): Promise<Head | undefined> {
  const row = await tx.get(headByRef, { ref });
  if (row === undefined) return undefined;
  const { taint, ...found } = row;
  return {
    ...found,
    cutSeq: Math.max(row.floor, row.cutSeq ?? 0),
    prefix: row.prefix ?? '',
    prefixTokens: row.prefixTokens ?? 0,
    behind: row.behind === 1,
    tainted: taint === 2,
  };
}

const counted = (row: MessageRow): CountedRow => ({ ...row, tokens: countMessage(toModelMessage(row), countTokens) });

/** Returns the newest messages after the cut, oldest first, up to `bytes`. */
export const readContext = operation(
  'context.read',
  async (
    tx,
    { ref, bytes }: { readonly ref: string; readonly bytes: number },
  ): Promise<(Head & { readonly rows: readonly CountedRow[] }) | undefined> => {
    const head = await readHead(tx, ref);
    if (head === undefined) return undefined;
    const { conversationId, cutSeq, lastSeq } = head;
    const rows = await readBackward(tx, { conversationId, from: cutSeq + 1, to: lastSeq, bytes });
    return { ...head, rows: rows.map(counted) };
  },
);

export const nodeColumns = [
  'id',
  'kind',
  'depth',
  'fromSeq',
  'toSeq',
  'tokenCount',
  'content',
  'taint',
  'model',
  'stopgap',
  'parentId',
  'createdAtMs',
] as const;

const rootNodes = query<{ conversationId: number }, SummaryNode>(({ db, p }) =>
  db.selectFrom('summary').select(nodeColumns).where('conversationId', '=', p('conversationId')).where('parentId', 'is', null).orderBy('fromSeq'),
);

/** Returns the nodes without a parent, oldest messages first. */
export const readRoots = operation('context.roots', async (tx, input: { readonly conversationId: number }): Promise<SummaryNode[]> =>
  tx.all(rootNodes, input),
);

/** Maximum messages in one leaf, and rows read per page. */
const longestChunk = 512;
const chunkPage = 32;

export interface ChunkQuery {
  readonly conversationId: number;
  readonly from: number;
  readonly to: number;
  /** Target token count of the messages. */
  readonly tokens: number;
  /** Maximum tokens of their transcript. */
  readonly transcriptTokens: number;
  readonly insteadTokens: number;
}

export interface Chunk {
  readonly fromSeq: number;
  readonly toSeq: number;
  /** Turn of the last message. */
  readonly turnId: string;
  readonly taint: SummaryNode['taint'];
  readonly transcript: string;
  /** Replaces a summary that cannot be made. */
  readonly instead: string;
}

/**
 * Returns the transcript to summarise: whole exchanges from `from` until they have `tokens`, at most up to `to`. An exchange
 * longer than a chunk is split. Undefined when there are no messages.
 */
export const readChunk = operation('context.chunk', async (tx, input: ChunkQuery): Promise<Chunk | undefined> => {
  const rows = await chunkRows(tx, input);
  const [first] = rows;
  const last = rows.at(-1);
  if (first === undefined || last === undefined) return undefined;
  const range = { from: first.seq, to: last.seq };
  return {
    fromSeq: range.from,
    toSeq: range.to,
    turnId: last.turnId,
    taint: taintOf(rows),
    transcript: renderTranscript(rows, input.transcriptTokens),
    instead: truncate(rows, range, input.insteadTokens),
  };
});

async function chunkRows(tx: Tx, { conversationId, from, to, tokens }: ChunkQuery): Promise<readonly MessageRow[]> {
  const chunk: MessageRow[] = [];
  let sum = 0;
  for (let next = from; next <= to && chunk.length < longestChunk; next += chunkPage) {
    for (const row of await readForward(tx, { conversationId, from: next, to, limit: chunkPage })) {
      if (sum >= tokens && row.role === 'user') return chunk;
      sum += counted(row).tokens;
      chunk.push(row);
    }
  }
  if ((chunk.at(-1)?.seq ?? to) >= to) return chunk;
  const lastBegin = chunk.findLastIndex((row) => row.role === 'user');
  return lastBegin > 0 ? chunk.slice(0, lastBegin) : chunk;
}

const insertNode = query<SummaryNode & { conversationId: number }>(({ db, each }) =>
  db.insertInto('summary').values(each([...nodeColumns, 'conversationId'])),
);

/** State that must be unchanged when a leaf is stored. Includes a turn id, because conversation ids are reused. */
export interface Basis {
  readonly ref: string;
  readonly floor: number;
  readonly toSeq: number;
  /** Turn of the message at `toSeq`. */
  readonly turnId: string;
}

const unchanged = query<Basis, { conversationId: number }>(({ db, p }) =>
  db
    .selectFrom('conversation')
    .innerJoin('message', 'message.conversationId', 'conversation.id')
    .select('conversation.id as conversationId')
    .where('conversation.ref', '=', p('ref'))
    .where('conversation.modelSeqFloor', '=', p('floor'))
    .where('message.seq', '=', p('toSeq'))
    .where('message.turnId', '=', p('turnId'))
    .forShare('conversation'),
);

/** Returns the last message covered by a summary that is not a stopgap. */
export const coveredBy = (roots: readonly SummaryNode[], floor: number): number =>
  roots.reduce((last, node) => (node.stopgap === 1 ? last : Math.max(last, node.toSeq)), floor);

/** Appends a leaf. Returns false when the conversation was reset, deleted or summarised meanwhile. */
export const addLeaf = operation(
  'context.addLeaf',
  async (tx, { basis, node }: { readonly basis: Basis; readonly node: SummaryNode }): Promise<boolean> => {
    const found = await tx.get(unchanged, basis);
    if (found === undefined) return false;
    const { conversationId } = found;
    if (coveredBy(await tx.all(rootNodes, { conversationId }), basis.floor) !== node.fromSeq - 1) return false;
    await tx.run(insertNode, { ...node, conversationId });
    return true;
  },
);

const adopt = query<{ id: string; parentId: string; conversationId: number }>(({ db, p }) =>
  db
    .updateTable('summary')
    .set({ parentId: p('parentId') })
    .where('id', '=', p('id'))
    .where('conversationId', '=', p('conversationId'))
    .where('parentId', 'is', null),
);

/** Adds a parent of nodes without one. Returns false when one of them was deleted; node ids are never reused. */
export const addCondensed = operation(
  'context.addCondensed',
  async (
    tx,
    { conversationId, node, childIds }: { readonly conversationId: number; readonly node: SummaryNode; readonly childIds: readonly string[] },
  ): Promise<boolean> => {
    const roots = new Set((await tx.all(rootNodes, { conversationId })).map((root) => root.id));
    if (!childIds.every((id) => roots.has(id))) return false;
    await tx.run(insertNode, { ...node, conversationId });
    for (const id of childIds) await tx.run(adopt, { id, parentId: node.id, conversationId });
    return true;
  },
);

const dropStopgaps = query<{ conversationId: number }>(({ db, p }) =>
  db.deleteFrom('summary').where('conversationId', '=', p('conversationId')).where('stopgap', '=', 1),
);

const putState = query<{ conversationId: number; cutSeq: number; prefix: string; prefixTokens: number; behind: number; atMs: number }>(
  ({ db, sql, each, p }) =>
    db
      .insertInto('contextState')
      .values({ ...each(['conversationId', 'cutSeq', 'prefix', 'prefixTokens', 'behind']), updatedAtMs: p('atMs') })
      .onConflict((conflict) =>
        conflict.column('conversationId').doUpdateSet({
          cutSeq: sql<number>`excluded.cut_seq`,
          prefix: sql<string>`excluded.prefix`,
          prefixTokens: sql<number>`excluded.prefix_tokens`,
          behind: sql<number>`excluded.behind`,
          updatedAtMs: sql<number>`excluded.updated_at_ms`,
        }),
      ),
);

export interface CutMove {
  readonly ref: string;
  /** State on which the move was decided. */
  readonly from: { readonly cutSeq: number; readonly floor: number; readonly covered: number };
  readonly cutSeq: number;
  readonly prefix: string;
  readonly prefixTokens: number;
  /** Represents messages before the cut without a summary; replaces an earlier stopgap. */
  readonly stopgap: SummaryNode | null;
  readonly atMs: number;
}

/** Keeps a conversation from being reset or deleted until the commit. */
const keptConversation = query<{ ref: string }, { id: number }>(({ db, p }) =>
  db.selectFrom('conversation').select('id').where('ref', '=', p('ref')).forShare(),
);

/** Moves the cut, or replaces the prefix of the same cut. Returns false when it was changed concurrently. */
export const moveCut = operation('context.moveCut', async (tx, move: CutMove): Promise<boolean> => {
  await tx.get(keptConversation, { ref: move.ref });
  const head = await readHead(tx, move.ref);
  if (head === undefined || head.floor !== move.from.floor || head.cutSeq !== move.from.cutSeq || head.lastSeq < move.cutSeq) return false;
  const { conversationId } = head;
  if (coveredBy(await tx.all(rootNodes, { conversationId }), head.floor) !== move.from.covered) return false;
  await tx.run(dropStopgaps, { conversationId });
  if (move.stopgap !== null) await tx.run(insertNode, { ...move.stopgap, conversationId });
  await tx.run(putState, { ...move, conversationId, behind: move.stopgap === null ? 0 : 1 });
  return true;
});

const deleteSummaries = query<{ conversationId: number }>(({ db, p }) => db.deleteFrom('summary').where('conversationId', '=', p('conversationId')));
const deleteState = query<{ conversationId: number }>(({ db, p }) => db.deleteFrom('contextState').where('conversationId', '=', p('conversationId')));

/** Deletes the summaries and the cut of a conversation. Part of operations that delete or reset conversations. */
export async function dropContext(tx: Tx, input: { readonly conversationId: number }): Promise<{ readonly summaries: number }> {
  const { changes } = await tx.run(deleteSummaries, input);
  await tx.run(deleteState, input);
  return { summaries: changes };
}

export const contextOperations = [readContext, readRoots, readChunk, addLeaf, addCondensed, moveCut];
