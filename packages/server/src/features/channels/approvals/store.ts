import { operation, query } from '../../../kernel/db/operation.ts';
import type { RequestState } from '../../access/approvals/api.ts';
import type { ChatGate } from './api.ts';

/** Key of the question about a request. */
export const questionKeyOf = (approvalId: string): string => `approval:${approvalId}`;
/** Key of the confirmation of its end. */
export const confirmationKeyOf = (approvalId: string): string => `approval-end:${approvalId}`;

/** A request that was put to a chat. */
export interface ChatRequest {
  readonly id: string;
  readonly agentId: string;
  readonly conversationRef: string;
  readonly action: string;
  readonly state: RequestState;
  readonly decidedBy: string | null;
  readonly expiresAtMs: number;
  readonly chatJson: string;
  /** JSON of its suspended turn, with the principal. */
  readonly turnJson: string | null;
}

const columns = ['id', 'agentId', 'conversationRef', 'action', 'state', 'decidedBy', 'expiresAtMs', 'chatJson', 'turnJson'] as const;

const ofChats = query<object, ChatRequest>(({ db }) =>
  db.selectFrom('approval').select(columns).$narrowType<{ chatJson: string }>().where('chatJson', 'is not', null).orderBy('id', 'desc'),
);

/** Returns the requests of all chats that are pending or were decided lately, newest first. */
export const readChatRequests = operation('channels.chatRequests', (tx): Promise<ChatRequest[]> => tx.all(ofChats, {}));

const unconfirmed = query<object, ChatRequest>(({ db, sql }) =>
  db
    .selectFrom('approval')
    .select(columns)
    .$narrowType<{ chatJson: string }>()
    .where('chatJson', 'is not', null)
    .where('state', '<>', 'pending')
    .where(sql<boolean>`exists (select 1 from outbound_message where op_key = 'approval:' || approval.id)`)
    .where(sql<boolean>`not exists (select 1 from outbound_message where op_key = 'approval-end:' || approval.id)`)
    .limit(100),
);

/** Returns the ended requests whose chats were not notified. */
export const readUnconfirmed = operation('channels.unconfirmedRequests', (tx): Promise<ChatRequest[]> => tx.all(unconfirmed, {}));

const gates = query<{ instance: string; conversationId: string }, ChatGate>(({ db, sql, p }) =>
  db
    .selectFrom('graphNode')
    .innerJoin('graphRun', 'graphRun.id', 'graphNode.graphId')
    .select(['graphNode.graphId', 'graphNode.nodeId', 'graphRun.agentId', 'graphRun.principalId'])
    .where('graphRun.state', '=', 'running')
    .where('graphNode.state', '=', 'running')
    .where('graphNode.answer', 'is', null)
    .where(
      sql<boolean>`exists (select 1 from outbound_message where instance = ${p('instance')} and conversation_id = ${p('conversationId')}
        and op_key = 'graph:' || graph_node.graph_id || ':ask:' || graph_node.node_id || ':' || graph_node.attempt)`,
    ),
);

/** Returns the pending gates of graphs that were put to a conversation of a platform. */
export const readGates = operation(
  'channels.gates',
  (tx, input: { readonly instance: string; readonly conversationId: string }): Promise<ChatGate[]> => tx.all(gates, input),
);

export const chatApprovalOperations = [readGates, readChatRequests, readUnconfirmed];
