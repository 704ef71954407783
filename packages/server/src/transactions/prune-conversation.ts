import { dropApprovals } from '../features/access/approvals/store.ts';
import { forgetReceipts } from '../features/conversations/receipts/store.ts';
import { dropConversation } from '../features/conversations/sessions/store.ts';
import { dropTasks, isOpenTask } from '../features/environment/background/store.ts';
import { dropReviewMark } from '../features/knowledge/memory/lifecycle/review/review-store.ts';
import { operation, type QueryTools, query } from '../kernel/db/operation.ts';

export interface EndedConversation {
  readonly ref: string;
  readonly principalId: string;
}

/** Conversations of sub-agents that were last used before a time, and that nothing refers to: no listed run, no request, no task, no message. */
function ended({ db, sql, p }: QueryTools<{ beforeMs: number }>) {
  return db
    .selectFrom('conversation')
    .where(sql<boolean>`kind = 'sub-agent'`)
    .where('updatedAtMs', '<', p('beforeMs'))
    .where(sql<boolean>`not exists (select 1 from sub_agent_run where sub_agent_run.conversation_ref = conversation.ref)`)
    .where(sql<boolean>`not exists (select 1 from approval where approval.conversation_ref = conversation.ref and approval.state = 'pending')`)
    .where(
      sql<boolean>`not exists (select 1 from background_task where background_task.conversation_ref = conversation.ref and ${sql.raw(isOpenTask)})`,
    )
    .where(
      sql<boolean>`not exists (select 1 from session_send where session_send.ended_at_ms is null
        and (session_send.to_ref = conversation.ref or session_send.from_ref = conversation.ref))`,
    );
}

const longestUnused = query<{ beforeMs: number; limit: number }, EndedConversation>((tools) =>
  ended(tools).select(['ref', 'principalId']).orderBy('updatedAtMs').limit(tools.p('limit')),
);

/** Finds conversations for `pruneConversation`, those that were not used for the longest time first. */
export const findEndedConversations = operation(
  'sessions.findEnded',
  async (tx, input: { readonly beforeMs: number; readonly limit: number }): Promise<EndedConversation[]> => tx.all(longestUnused, input),
);

const one = query<{ ref: string; beforeMs: number }, { id: number }>((tools) =>
  ended(tools).select('id').where('ref', '=', tools.p('ref')).forUpdate(),
);

/** Removes the conversation of a sub-agent, without an archive; false when it was used, or something refers to it, meanwhile. Call it in the lane. */
export const pruneConversation = operation(
  'sessions.prune',
  async (tx, input: { readonly ref: string; readonly beforeMs: number }): Promise<boolean> => {
    const found = await tx.get(one, input);
    if (found === undefined) return false;
    await dropConversation(tx, found.id);
    await dropApprovals(tx, { conversationRef: input.ref });
    await forgetReceipts(tx, input.ref);
    await dropReviewMark(tx, input.ref);
    await dropTasks(tx, input.ref);
    return true;
  },
);
