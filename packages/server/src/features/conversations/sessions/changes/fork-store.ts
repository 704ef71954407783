import { AppError } from '../../../../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../../../../kernel/db/audit.ts';
import { operation, query } from '../../../../kernel/db/operation.ts';
import { chatKindOf, tenantId } from '../conversation.ts';
import { type ConversationRow, type ConversationTaint, lockConversation, readConversation, sourceOf } from '../store.ts';

/** Maximum messages copied in one transaction, which blocks commits for about a tenth of a second. */
const maxForked = 50_000;

export interface Fork {
  readonly sourceRef: string;
  /** Position of the last copied message; null copies all. */
  readonly toSeq: number | null;
  readonly ref: string;
  readonly principalId: string;
  readonly sessionKey: string;
  /** The agent of the source when absent. */
  readonly agentId?: string | undefined;
  /** Made by a replay. */
  readonly synthetic?: true | undefined;
  readonly atMs: number;
  readonly audit: AuditRow;
}

const lastOfGroup = query<{ conversationId: number; seq: number }, { seq: number | null }>(({ db, sql, p }) =>
  db
    .selectFrom('message')
    .select(sql<number | null>`min(seq) - 1`.as('seq'))
    .where('conversationId', '=', p('conversationId'))
    .where('seq', '>', p('seq'))
    .where('role', '<>', 'tool'),
);
const turnsWithin = query<{ conversationId: number; seq: number }, { count: number }>(({ db, sql, p }) =>
  db
    .selectFrom('message')
    .select(sql<number>`count(DISTINCT turn_id)`.as('count'))
    .where('conversationId', '=', p('conversationId'))
    .where('seq', '<=', p('seq')),
);

const insertFork = query<
  Omit<Fork, 'audit' | 'agentId' | 'synthetic'> & {
    synthetic: 0 | 1;
    agentId: string;
    kind: ConversationRow['kind'];
    source: ConversationRow['source'];
    title: string | null;
    name: string | null;
    tags: string;
    count: number;
    turns: number;
    floor: number;
    taint: ConversationTaint;
  },
  { id: number }
>(({ db, each, p }) =>
  db
    .insertInto('conversation')
    .values({
      ...each(['ref', 'agentId', 'principalId', 'kind', 'source', 'sessionKey', 'title', 'name', 'tags', 'taint', 'synthetic']),
      tenantId,
      forkedFrom: p('sourceRef'),
      modelSeqFloor: p('floor'),
      lastSeq: p('count'),
      messageCount: p('count'),
      turnCount: p('turns'),
      stepCount: 0,
      toolCallCount: 0,
      inputTokens: 0,
      outputTokens: 0,
      costNano: 0,
      createdAtMs: p('atMs'),
      updatedAtMs: p('atMs'),
    })
    .returning('id'),
);

const copied = ['seq', 'turnId', 'role', 'content', 'toolJson', 'attachmentsJson', 'reasoningJson', 'createdAtMs'] as const;
const copyMessages = query<{ from: number; to: number; seq: number }>(({ db, sql, p }) =>
  db
    .insertInto('message')
    .columns(['conversationId', ...copied])
    .expression(
      db
        .selectFrom('message')
        .select([sql`${p('to')}`.as('to'), ...copied])
        .where('conversationId', '=', p('from'))
        .where('seq', '<=', p('seq'))
        .orderBy('seq'),
    ),
);

/** Copies a conversation up to a message to a new key. Throws `not_found`, `conflict` for a taken key, or `precondition_failed`. */
export const forkConversation = operation('sessions.fork', async (tx, fork: Fork): Promise<ConversationRow> => {
  const source = await lockConversation(tx, fork.sourceRef);
  if (source === undefined) throw new AppError('not_found', 'Conversation not found');
  if (fork.toSeq !== null && fork.toSeq > source.lastSeq) {
    throw new AppError('precondition_failed', `seq: expected at most ${source.lastSeq}, the last message of the conversation`, { param: 'seq' });
  }
  if (source.lastSeq === 0) throw new AppError('precondition_failed', 'The conversation has no messages to copy');
  if ((await readConversation(tx, fork.ref)) !== undefined) {
    throw new AppError('conflict', 'forkKey: already used by another conversation', { param: 'forkKey' });
  }
  const seq = fork.toSeq ?? source.lastSeq;
  // Providers reject a tool call without its result.
  const count = (await tx.get(lastOfGroup, { conversationId: source.id, seq }))?.seq ?? source.lastSeq;
  if (count > maxForked)
    throw new AppError('precondition_failed', `seq: expected at most ${maxForked}, the maximum that a fork copies`, { param: 'seq' });
  const turns = (await tx.get(turnsWithin, { conversationId: source.id, seq: count }))?.count ?? 1;
  // A caller who names a message before the reset wants to continue from there.
  const floor = fork.toSeq === null || source.modelSeqFloor < count ? source.modelSeqFloor : 0;
  // Untrusted text may have been read before that reset.
  const taint = count === 0 ? 0 : floor < source.modelSeqFloor && source.taint > 0 ? 2 : source.taint;
  const kind = chatKindOf(fork.sessionKey) === 'dm' ? 'dm' : 'group';
  const made = await tx.get(insertFork, {
    ...fork,
    agentId: fork.agentId ?? source.agentId,
    synthetic: fork.synthetic === true ? 1 : 0,
    kind,
    source: sourceOf(fork.sessionKey),
    title: source.title,
    name: count === 0 ? null : source.name,
    tags: source.tags,
    count,
    turns,
    floor,
    taint,
  });
  if (made === undefined) throw new Error('a fork returned no row');
  await tx.run(copyMessages, { from: source.id, to: made.id, seq: count });
  await appendAudit(tx, fork.audit);
  const row = await readConversation(tx, fork.ref);
  if (row === undefined) throw new Error('a fork was not stored');
  return row;
});

export const forkOperations = [forkConversation];
