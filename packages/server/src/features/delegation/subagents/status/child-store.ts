import { operation, query } from '../../../../kernel/db/operation.ts';
import { type RunRow, runColumns } from '../run/row.ts';

const byConversation = query<{ requesterRef: string; conversationRef: string }, RunRow>(({ db, p }) =>
  db
    .selectFrom('subAgentRun')
    .select(runColumns)
    .where('conversationRef', '=', p('conversationRef'))
    .where('requesterRef', '=', p('requesterRef'))
    .orderBy('id', 'desc')
    .limit(1),
);

/** Finds the newest run of a conversation that another conversation requested. */
export const findChild = operation('subagents.findChild', (tx, input: { readonly requesterRef: string; readonly conversationRef: string }) =>
  tx.get(byConversation, input),
);

export const subagentChildOperations = [findChild];
