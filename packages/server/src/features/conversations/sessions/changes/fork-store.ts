import { AppError } from '../../../../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../../../../kernel/db/audit.ts';
import { operation, query } from '../../../../kernel/db/operation.ts';
import { chatKindOf, tenantId } from '../conversation.ts';
import { type ConversationRow, type ConversationTaint, readConversation } from '../store.ts';

/** Messages that one transaction copies: about a tenth of a second in which no turn commits. */
const maxForked = 50_000;

export interface Fork {
  readonly sourceRef: string;
  /** Position of the last message that is taken over; all when null. */
  readonly toSeq: number | null;
  readonly ref: string;
  readonly principalId: string;
  readonly sessionKey: string;
  readonly atMs: number;
  readonly audit: AuditRow;
}

const lastOfGroup = query<{ conversationId: number; seq: number }, { seq: number | null }>(({ db, sql, p }) =>
  db
    .selectFrom('message')
    .select(sql<number | null>`min(seq) - 1`.as('seq'))
    .where('conversation_id', '=', p('conversationId'))
    .where('seq', '>', p('seq'))
    .where('role', '<>', 'tool'),
);
const turnsWithin = query<{ conversationId: number; seq: number }, { count: number }>(({ db, sql, p }) =>
  db
    .selectFrom('message')
    .select(sql<number>`count(DISTINCT turn_id)`.as('count'))
    .where('conversation_id', '=', p('conversationId'))
    .where('seq', '<=', p('seq')),
);

const insertFork = query<
  Omit<Fork, 'audit'> & {
    agentId: string;
    kind: string;
    title: string | null;
    count: number;
    turns: number;
    floor: number;
    taint: ConversationTaint;
  },
  { id: number }
>(({ db, p }) =>
  db
    .insertInto('conversation')
    .values({
      ref: p('ref'),
      tenant_id: tenantId,
      agent_id: p('agentId'),
      principal_id: p('principalId'),
      kind: p('kind'),
      session_key: p('sessionKey'),
      title: p('title'),
      forked_from: p('sourceRef'),
      model_seq_floor: p('floor'),
      taint: p('taint'),
      last_seq: p('count'),
      message_count: p('count'),
      turn_count: p('turns'),
      step_count: 0,
      tool_call_count: 0,
      input_tokens: 0,
      output_tokens: 0,
      cost_nano: 0,
      created_at_ms: p('atMs'),
      updated_at_ms: p('atMs'),
    })
    .returning('id'),
);

const copied = ['seq', 'turn_id', 'role', 'content', 'tool_json', 'attachments_json', 'created_at_ms'] as const;
const copyMessages = query<{ from: number; to: number; seq: number }>(({ db, sql, p }) =>
  db
    .insertInto('message')
    .columns(['conversation_id', ...copied])
    .expression(
      db
        .selectFrom('message')
        .select([sql`${p('to')}`.as('to'), ...copied])
        .where('conversation_id', '=', p('from'))
        .where('seq', '<=', p('seq'))
        .orderBy('seq'),
    ),
);

/** Copies a conversation up to a message under another identity; `not_found`, `conflict` when the new key is taken, `precondition_failed` for what cannot be taken over. */
export const forkConversation = operation('sessions.fork', async (tx, fork: Fork): Promise<ConversationRow> => {
  const source = await readConversation(tx, fork.sourceRef);
  if (source === undefined) throw new AppError('not_found', 'Conversation not found');
  if (fork.toSeq !== null && fork.toSeq > source.lastSeq) {
    throw new AppError('precondition_failed', `seq: expected at most ${source.lastSeq}, the last message of the conversation`, { param: 'seq' });
  }
  if (source.lastSeq === 0) throw new AppError('precondition_failed', 'The conversation has no message to take over');
  if ((await readConversation(tx, fork.ref)) !== undefined) {
    throw new AppError('conflict', 'forkKey: expected one that no conversation has yet', { param: 'forkKey' });
  }
  const seq = fork.toSeq ?? source.lastSeq;
  // A call of a tool without its result is refused by providers.
  const count = (await tx.get(lastOfGroup, { conversationId: source.id, seq }))?.seq ?? source.lastSeq;
  if (count > maxForked)
    throw new AppError('precondition_failed', `seq: expected at most ${maxForked}, the most that a fork takes over`, { param: 'seq' });
  const turns = (await tx.get(turnsWithin, { conversationId: source.id, seq: count }))?.count ?? 1;
  // Who names a message of before the reset wants to go on from there.
  const floor = fork.toSeq === null || source.modelSeqFloor < count ? source.modelSeqFloor : 0;
  // Before that reset something may have been read that nothing after it was.
  const taint = floor < source.modelSeqFloor && source.taint > 0 ? 2 : source.taint;
  const kind = chatKindOf(fork.sessionKey) === 'dm' ? 'dm' : 'group';
  const made = await tx.get(insertFork, { ...fork, agentId: source.agentId, kind, title: source.title, count, turns, floor, taint });
  if (made === undefined) throw new Error('a fork returned no row');
  await tx.run(copyMessages, { from: source.id, to: made.id, seq: count });
  await appendAudit(tx, fork.audit);
  const row = await readConversation(tx, fork.ref);
  if (row === undefined) throw new Error('a fork was not stored');
  return row;
});

export const forkOperations = [forkConversation];
