import { AppError } from '../../../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../../../kernel/db/audit.ts';
import { type Database, operation, query, type Tx } from '../../../kernel/db/operation.ts';
import { holdsTaint } from '../../../runtime/fence.ts';
import type { ConversationTarget, MessageRow, NewMessages } from './api.ts';
import { chatKindOf, tenantId } from './conversation.ts';
import { unindexMessages } from './search/index-store.ts';
import { titleOf } from './reading/title.ts';

export interface ConversationRow {
  readonly id: number;
  readonly ref: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly kind: 'dm' | 'group' | 'sub-agent' | 'v1';
  readonly sessionKey: string;
  readonly lastSeq: number;
  readonly messageCount: number;
  readonly turnCount: number;
  readonly stepCount: number;
  readonly toolCallCount: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costNano: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** Start of the first user message; null until there is one. */
  readonly title: string | null;
  /** Reference of the conversation that this one was forked from. */
  readonly forkedFrom: string | null;
  readonly resetCount: number;
  readonly compactionCount: number;
  /** Messages up to this position precede the last reset and are hidden from the model. */
  readonly modelSeqFloor: number;
  readonly taint: ConversationTaint;
  /** 1: made by a replay, 0: not. Set by the server alone; nothing is learned from it. */
  readonly synthetic: 0 | 1;
  /** Given by a person or a model. */
  readonly name: string | null;
  readonly shelf: 'list' | 'pinned' | 'archived';
  readonly source: ConversationSource;
  /** Its tags in the order of the alphabet, each between line breaks; empty without any. */
  readonly tags: string;
}

/** What started a conversation: a message to the agent, or work of the daemon. */
export type ConversationSource = 'chat' | 'job' | 'sub-agent' | 'webhook' | 'heartbeat' | 'evaluation';

/** Whether turns have read untrusted text: none (0), only before the last reset (1), or in messages the model still sees (2). */
export type ConversationTaint = 0 | 1 | 2;

const columns = [
  'id',
  'ref',
  'agentId',
  'principalId',
  'kind',
  'sessionKey',
  'lastSeq',
  'messageCount',
  'turnCount',
  'stepCount',
  'toolCallCount',
  'inputTokens',
  'outputTokens',
  'costNano',
  'createdAtMs',
  'updatedAtMs',
  'title',
  'forkedFrom',
  'resetCount',
  'compactionCount',
  'modelSeqFloor',
  'taint',
  'synthetic',
  'name',
  'shelf',
  'source',
  'tags',
] as const;

type Growth = Omit<NewMessages, 'messages' | 'tainted'> & {
  readonly count: number;
  readonly kind: ConversationRow['kind'];
  readonly source: ConversationSource;
  readonly title: string | null;
  readonly taint: ConversationTaint;
};

const growConversation = query<Growth, { id: number; lastSeq: number; turnCount: number }>(({ db, sql, each, p }) =>
  db
    .insertInto('conversation')
    .values({
      ...each(['ref', 'agentId', 'principalId', 'kind', 'source', 'sessionKey', 'title', 'inputTokens', 'outputTokens', 'costNano', 'taint']),
      tenantId,
      lastSeq: p('count'),
      messageCount: p('count'),
      turnCount: 1,
      stepCount: p('steps'),
      toolCallCount: p('toolCalls'),
      createdAtMs: p('atMs'),
      updatedAtMs: p('atMs'),
    })
    .onConflict((conflict) =>
      conflict.column('ref').doUpdateSet({
        lastSeq: sql<number>`conversation.last_seq + excluded.last_seq`,
        messageCount: sql<number>`conversation.message_count + excluded.message_count`,
        turnCount: sql<number>`conversation.turn_count + 1`,
        stepCount: sql<number>`conversation.step_count + excluded.step_count`,
        toolCallCount: sql<number>`conversation.tool_call_count + excluded.tool_call_count`,
        inputTokens: sql<number>`conversation.input_tokens + excluded.input_tokens`,
        outputTokens: sql<number>`conversation.output_tokens + excluded.output_tokens`,
        costNano: sql<number>`conversation.cost_nano + excluded.cost_nano`,
        updatedAtMs: sql<number>`excluded.updated_at_ms`,
        // A branch at the first question has the title of the original until it is asked.
        title: sql<string | null>`case when conversation.message_count = 0 then coalesce(excluded.title, conversation.title)
          else coalesce(conversation.title, excluded.title) end`,
        taint: sql<ConversationTaint>`case when excluded.taint > conversation.taint then excluded.taint else conversation.taint end`,
      }),
    )
    .returning(['id', 'lastSeq', 'turnCount']),
);

const messageColumns = ['seq', 'turnId', 'role', 'content', 'toolJson', 'attachmentsJson', 'reasoningJson', 'createdAtMs'] as const;

const insertMessage = query<{
  conversationId: number;
  seq: number;
  turnId: string;
  role: MessageRow['role'];
  content: string;
  toolJson: string | null;
  attachmentsJson: string | null;
  reasoningJson: string | null;
  createdAtMs: number;
}>(({ db, each }) => db.insertInto('message').values(each([...messageColumns, 'conversationId'])));

/** Returns the kind of a key. Sub-agents have a distinct prefix; forging it only affects the caller's own conversations. */
export const kindOf = (sessionKey: string): 'dm' | 'group' | 'sub-agent' =>
  sessionKey.startsWith('subagent:gateway:') ? 'sub-agent' : chatKindOf(sessionKey) === 'dm' ? 'dm' : 'group';

/** Returns what started the conversation of a key; forging one only hides the caller's own conversation from lists of chats. */
export function sourceOf(sessionKey: string): ConversationSource {
  const [userId, channelId, peerId] = sessionKey.split(':');
  if (userId === 'subagent' && peerId !== undefined) return 'sub-agent';
  if (userId === 'cron') return 'job';
  if (userId === 'heartbeat') return 'heartbeat';
  if (userId === 'gatehouse' && channelId === 'evaluation') return 'evaluation';
  return channelId === 'webhook' && peerId !== undefined ? 'webhook' : 'chat';
}

/** Adds the messages of one turn to its conversation, and creates it on the first turn. Part of `commitTurn`. */
export async function addMessages(tx: Tx, input: NewMessages): Promise<{ readonly created: boolean; readonly firstSeq: number }> {
  const count = input.messages.length;
  const kind = kindOf(input.sessionKey);
  const source = sourceOf(input.sessionKey);
  const isTainted = input.tainted === true || input.messages.some((one) => one.attachmentsJson !== null || holdsTaint(one.content));
  const taint = isTainted ? 2 : 0;
  const conversation = await tx.get(growConversation, { ...input, count, kind, source, title: titleOf(input.messages[0]), taint });
  if (conversation === undefined) throw new Error('growing a conversation returned no row');
  const firstSeq = conversation.lastSeq - count + 1;
  for (const [index, message] of input.messages.entries()) {
    await tx.run(insertMessage, { conversationId: conversation.id, seq: firstSeq + index, turnId: input.turnId, reasoningJson: null, ...message });
  }
  // Not `firstSeq`: a cleared conversation starts at 1 again.
  return { created: conversation.turnCount === 1, firstSeq };
}

const insertEmpty = query<ConversationTarget & { kind: ConversationRow['kind']; source: ConversationSource; title: string | null; atMs: number }>(
  ({ db, each, p }) =>
    db
      .insertInto('conversation')
      .values({
        ...each(['ref', 'agentId', 'principalId', 'kind', 'source', 'sessionKey', 'title']),
        tenantId,
        lastSeq: 0,
        messageCount: 0,
        turnCount: 0,
        stepCount: 0,
        toolCallCount: 0,
        inputTokens: 0,
        outputTokens: 0,
        costNano: 0,
        createdAtMs: p('atMs'),
        updatedAtMs: p('atMs'),
        taint: 0,
      })
      .onConflict((conflict) => conflict.column('ref').doNothing()),
);

/** Stores a conversation before its first turn, which answers `question`, has ended. Part of `checkpointTurn`. */
export async function openConversation(
  tx: Tx,
  { target, question, atMs }: { readonly target: ConversationTarget; readonly question: string; readonly atMs: number },
): Promise<void> {
  const { sessionKey } = target;
  const title = titleOf({ role: 'user', content: question });
  await tx.run(insertEmpty, { ...target, kind: kindOf(sessionKey), source: sourceOf(sessionKey), title, atMs });
}

const addUsage = query<{ ref: string; inputTokens: number; outputTokens: number; costNano: number }>(({ db, sql, p }) =>
  db
    .updateTable('conversation')
    .set({
      inputTokens: sql<number>`input_tokens + ${p('inputTokens')}`,
      outputTokens: sql<number>`output_tokens + ${p('outputTokens')}`,
      costNano: sql<number>`cost_nano + ${p('costNano')}`,
    })
    .where('ref', '=', p('ref')),
);

/** Adds the usage of background work to its conversation; returns false when there is none. Part of `bookWork` and `abortOpenTurns`. */
export async function growUsage(
  tx: Tx,
  input: { readonly ref: string; readonly inputTokens: number; readonly outputTokens: number; readonly costNano: number },
): Promise<boolean> {
  return (await tx.run(addUsage, input)).changes > 0;
}

const byRef = query<{ ref: string }, ConversationRow>(({ db, p }) => db.selectFrom('conversation').select(columns).where('ref', '=', p('ref')));

/** Returns the row of a conversation of any owner, for operations whose caller has checked access. */
export function readConversation(tx: Tx, ref: string): Promise<ConversationRow | undefined> {
  return tx.get(byRef, { ref });
}

const present = query<{ ref: string }, { id: number }>(({ db, p }) =>
  db.selectFrom('conversation').select('id').where('ref', '=', p('ref')).forShare(),
);

/** Returns whether a conversation exists, and keeps it from being changed or deleted until the commit. */
export async function holdsConversation(tx: Tx, ref: string): Promise<boolean> {
  return (await tx.get(present, { ref })) !== undefined;
}

const byRefForUpdate = query<{ ref: string }, ConversationRow>(({ db, p }) =>
  db.selectFrom('conversation').select(columns).where('ref', '=', p('ref')).forUpdate(),
);

/** `readConversation` for operations that change or delete it: turns that are just being stored in it come before. */
export function lockConversation(tx: Tx, ref: string): Promise<ConversationRow | undefined> {
  return tx.get(byRefForUpdate, { ref });
}

/** Returns whether turns of any of these conversations ever read untrusted text. */
export const anyTainted = operation('sessions.anyTainted', async (tx, { refs }: { readonly refs: readonly string[] }): Promise<boolean> => {
  if (refs.length === 0) return false;
  const found = await tx.build<{ id: number }>((db) =>
    db
      .selectFrom('conversation')
      .select('id')
      .where('ref', 'in', [...refs])
      .where('taint', '>', 0)
      .limit(1),
  );
  return found.length > 0;
});

type SqlTag = Parameters<Parameters<typeof query>[0]>[0]['sql'];

/** Columns for completions of `/v1`, which have only a turn row: they are listed with their usage but have no messages. */
function v1Columns(sql: SqlTag) {
  return [
    sql<number>`0`.as('id'),
    'conversationRef as ref',
    'agentId',
    'principalId',
    sql<'v1'>`'v1'`.as('kind'),
    'sessionKey',
    sql<number>`0`.as('lastSeq'),
    sql<number>`0`.as('messageCount'),
    sql<number>`1`.as('turnCount'),
    'steps as stepCount',
    sql<number>`0`.as('toolCallCount'),
    'inputTokens',
    'outputTokens',
    sql<number>`coalesce(cost_nano, 0)`.as('costNano'),
    'startedAtMs as createdAtMs',
    sql<number>`coalesce(ended_at_ms, started_at_ms)`.as('updatedAtMs'),
    sql<null>`NULL`.as('title'),
    sql<null>`NULL`.as('forkedFrom'),
    sql<number>`0`.as('resetCount'),
    sql<number>`0`.as('compactionCount'),
    sql<number>`0`.as('modelSeqFloor'),
    sql<ConversationTaint>`0`.as('taint'),
    sql<0>`0`.as('synthetic'),
    sql<null>`NULL`.as('name'),
    sql<'list'>`'list'`.as('shelf'),
    sql<'chat'>`'chat'`.as('source'),
    sql<''>`''`.as('tags'),
  ] as const;
}

/** What a caller may reach; null means all. */
export interface Reach {
  readonly principalId: string | null;
  readonly agentIds: readonly string[] | null;
}

/** Returns whether a conversation is within a caller's reach. */
export const within = (row: Pick<ConversationRow, 'principalId' | 'agentId'>, { principalId, agentIds }: Reach): boolean =>
  (principalId === null || row.principalId === principalId) && (agentIds === null || agentIds.includes(row.agentId));

/** Finds a conversation by reference. Filters by reach in the query, so that inaccessible ones take the same time as unknown ones. */
export const findConversation = operation(
  'sessions.find',
  async (tx, input: Reach & { readonly ref: string }): Promise<ConversationRow | undefined> => {
    const row = await tx.get(byRef, { ref: input.ref });
    return row !== undefined && within(row, input) ? row : undefined;
  },
);

const byKey = query<{ agentId: string; sessionKey: string }, ConversationRow>(({ db, p }) =>
  db
    .selectFrom('conversation')
    .select(columns)
    .where('tenantId', '=', tenantId)
    .where('agentId', '=', p('agentId'))
    .where('sessionKey', '=', p('sessionKey'))
    .limit(2),
);

/** Finds at most two conversations of any principal with a key, enough to detect ambiguity. */
export const findConversationsByKey = operation(
  'sessions.findByKey',
  async (tx, input: Reach & { readonly agentId: string; readonly sessionKey: string }): Promise<ConversationRow[]> =>
    (await tx.all(byKey, { agentId: input.agentId, sessionKey: input.sessionKey })).filter((row) => within(row, input)),
);

/** Returns which of the given conversations have a row. */
export const storedRefs = operation('sessions.stored', async (tx, { refs }: { readonly refs: readonly string[] }): Promise<string[]> => {
  const rows = await tx.build<{ ref: string }>((db) => db.selectFrom('conversation').select('ref').where('ref', 'in', refs));
  return rows.map(({ ref }) => ref);
});

export interface ListFilter extends Reach {
  readonly kind: 'all' | ConversationRow['kind'];
  readonly source: ConversationSource | null;
  readonly shelf: ConversationRow['shelf'] | null;
  readonly tag: string | null;
  readonly sinceMs: number | null;
  readonly offset: number;
  readonly limit: number;
}

/** Returns a page of conversations, newest first, with the total; covered by an index. */
export const listConversations = operation('sessions.list', async (tx, filter: ListFilter): Promise<{ rows: ConversationRow[]; total: number }> => {
  const { kind, source, shelf, tag, agentIds, principalId, sinceMs, limit, offset } = filter;
  const turns = (db: Database) => {
    let from = db.selectFrom('turn').where('origin', '=', 'v1');
    if (agentIds !== null) from = from.where('agentId', 'in', agentIds);
    if (principalId !== null) from = from.where('principalId', '=', principalId);
    return sinceMs === null ? from : from.where('startedAtMs', '>=', sinceMs);
  };
  const conversations = (db: Database, sql: SqlTag) => {
    let from = db.selectFrom('conversation');
    if (agentIds !== null) from = from.where('agentId', 'in', agentIds);
    if (principalId !== null) from = from.where('principalId', '=', principalId);
    if (kind !== 'all') from = from.where('kind', '=', kind);
    if (source !== null) from = from.where('source', '=', source);
    if (shelf !== null) from = from.where('shelf', '=', shelf);
    // Not by LIKE, whose case and wildcards depend on the engine.
    if (tag !== null) from = from.where(sql<boolean>`replace(tags, ${`\n${tag}\n`}, '') <> tags`);
    return sinceMs === null ? from : from.where('updatedAtMs', '>=', sinceMs);
  };
  const [count] = await tx.build<{ total: number }>((db, sql) => {
    const total = sql<number>`count(*)`.as('total');
    return kind === 'v1' ? turns(db).select(total) : conversations(db, sql).select(total);
  });
  const rows = await tx.build<ConversationRow>((db, sql) =>
    kind === 'v1'
      ? turns(db).select(v1Columns(sql)).orderBy('startedAtMs', 'desc').orderBy('id', 'desc').limit(limit).offset(offset)
      : conversations(db, sql).select(columns).orderBy('updatedAtMs', 'desc').orderBy('id', 'desc').limit(limit).offset(offset),
  );
  return { rows, total: count?.total ?? 0 };
});

/** How many conversations are read for the list of tags. */
const maxTagged = 10_000;

/** Selects the newest conversations that have tags: of all agents, so that what is read has a bound. */
export function newestTagged(db: Database, sql: SqlTag, principalId: string | null) {
  // Written out, because an index of rows that have tags is not used for a parameter.
  const from = db
    .selectFrom('conversation')
    .select(['agentId', 'tags'])
    .where(sql<boolean>`tags <> ''`);
  return (principalId === null ? from : from.where('principalId', '=', principalId)).orderBy('updatedAtMs', 'desc').limit(maxTagged);
}

/** Returns the stored tags of the newest conversations that have some. */
export const readTags = operation('sessions.tags', async (tx, { principalId, agentIds }: Reach): Promise<string[]> => {
  const rows = await tx.build<{ tags: string }>((db, sql) => {
    const tagged = db.selectFrom(newestTagged(db, sql, principalId).as('tagged')).select('tags');
    return agentIds === null ? tagged : tagged.where('agentId', 'in', agentIds);
  });
  return rows.map(({ tags }) => tags);
});

const messagePage = query<{ conversationId: number; from: number; to: number }, MessageRow>(({ db, p }) =>
  db
    .selectFrom('message')
    .select(messageColumns)
    .where('conversationId', '=', p('conversationId'))
    .where('seq', '>=', p('from'))
    .where('seq', '<', p('to'))
    .orderBy('seq'),
);

/** Reads messages by position: `seq` has no gaps, so a page is a range of the index. */
export const readMessages = operation(
  'sessions.messages',
  async (tx, input: { readonly conversationId: number; readonly offset: number; readonly limit: number }): Promise<MessageRow[]> => {
    return tx.all(messagePage, { conversationId: input.conversationId, from: input.offset + 1, to: input.offset + 1 + input.limit });
  },
);

const saidPage = query<
  { conversationId: number; offset: number; limit: number },
  { role: 'user' | 'assistant'; content: string; createdAtMs: number }
>(({ db, p }) =>
  db
    .selectFrom('message')
    .select(['role', 'content', 'createdAtMs'])
    .where('conversationId', '=', p('conversationId'))
    .where('role', 'in', ['user', 'assistant'])
    .$narrowType<{ role: 'user' | 'assistant' }>()
    .where('content', '<>', '')
    .orderBy('seq')
    .limit(p('limit'))
    .offset(p('offset')),
);
const saidCount = query<{ conversationId: number }, { total: number }>(({ db, sql, p }) =>
  db
    .selectFrom('message')
    .select(sql<number>`count(*)`.as('total'))
    .where('conversationId', '=', p('conversationId'))
    .where('role', 'in', ['user', 'assistant'])
    .$narrowType<{ role: 'user' | 'assistant' }>()
    .where('content', '<>', ''),
);

/** Returns a page of user and assistant texts, oldest first, without tool calls and results. */
export const readSaid = operation(
  'sessions.said',
  async (tx, { conversationId, offset, limit }: { readonly conversationId: number; readonly offset: number; readonly limit: number }) => ({
    rows: await tx.all(saidPage, { conversationId, offset, limit }),
    total: (await tx.get(saidCount, { conversationId }))?.total ?? 0,
  }),
);

const insertArchive = query<{
  id: string;
  ref: string;
  agentId: string;
  principalId: string;
  sessionKey: string;
  metadataJson: string;
  messagesJson: string;
  atMs: number;
}>(({ db, each, p }) =>
  db
    .insertInto('sessionArchive')
    .values({ ...each(['id', 'ref', 'agentId', 'principalId', 'sessionKey', 'metadataJson', 'messagesJson']), archivedAtMs: p('atMs') }),
);
const deleteMessages = query<{ id: number }>(({ db, p }) => db.deleteFrom('message').where('conversationId', '=', p('id')));

const deleteFeedback = query<{ id: number }>(({ db, p }) => db.deleteFrom('messageFeedback').where('conversationId', '=', p('id')));

/** Removes the messages of a conversation with what people noted on them, also from the index; its row is unchanged. */
export async function dropMessages(tx: Tx, conversationId: number): Promise<number> {
  await unindexMessages(tx, conversationId);
  await tx.run(deleteFeedback, { id: conversationId });
  return (await tx.run(deleteMessages, { id: conversationId })).changes;
}

const deleteRow = query<{ id: number }>(({ db, p }) => db.deleteFrom('conversation').where('id', '=', p('id')));

export interface Archival {
  readonly ref: string;
  /** Archived when nothing was stored because the first turn ended without an answer. */
  readonly pending?: ConversationRow | undefined;
  readonly archiveId: string;
  readonly atMs: number;
  readonly audit: AuditRow;
}

/** Archives and removes a conversation with an audit row. Part of `deleteConversation`. */
export async function archiveConversation(tx: Tx, input: Archival): Promise<ConversationRow> {
  const conversation = (await lockConversation(tx, input.ref)) ?? input.pending;
  if (conversation === undefined) throw new AppError('not_found', 'Conversation not found');
  const messages = await tx.all(messagePage, { conversationId: conversation.id, from: 1, to: conversation.lastSeq + 1 });
  await tx.run(insertArchive, {
    ...conversation,
    id: input.archiveId,
    metadataJson: JSON.stringify(conversation),
    messagesJson: JSON.stringify(messages),
    atMs: input.atMs,
  });
  await dropConversation(tx, conversation.id);
  await appendAudit(tx, input.audit);
  return conversation;
}

/** Removes a conversation without an archive. Part of `pruneConversation`. */
export async function dropConversation(tx: Tx, id: number): Promise<void> {
  await dropMessages(tx, id);
  await tx.run(deleteRow, { id });
}

export const sessionOperations = [
  findConversation,
  storedRefs,
  findConversationsByKey,
  listConversations,
  readTags,
  readMessages,
  readSaid,
  anyTainted,
];
