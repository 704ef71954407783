import { principalOfSender } from '../../../channels/sender-principal.ts';
import { operation, query } from '../../../kernel/db/operation.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { ApprovalChat, RequestState } from '../../access/approvals/api.ts';
import type { ChatGate } from './api.ts';

/** Key of the question about a request in the chat that it came from. */
export const questionKeyOf = (approvalId: string): string => `approval:${approvalId}`;
/** Key of the question about a request to an owner, when nobody in its chat may decide. */
export const ownerQuestionKeyOf = (approvalId: string): string => `approval-owner:${approvalId}`;
/** Key of the confirmation of the end that follows a question. */
export const confirmationKeyOf = (questionKey: string): string => questionKey.replace(':', '-end:');

/** A request that was put to a chat. */
export interface ChatRequest {
  readonly id: string;
  readonly agentId: string;
  readonly action: string;
  readonly state: RequestState;
  readonly decidedBy: string | null;
  readonly expiresAtMs: number;
  readonly to: ApprovalChat;
  /** Whether it came from another chat, in which nobody may decide. */
  readonly isForOwner: boolean;
}

/** A question whose request has ended. */
export interface EndedQuestion extends Pick<ChatRequest, 'id' | 'agentId' | 'state' | 'decidedBy' | 'to'> {
  readonly questionKey: string;
  readonly conversationRef: string | null;
  readonly principalId: string;
}

type Flat<Row extends { readonly to: ApprovalChat }> = Omit<Row, 'to'> & ApprovalChat;
function nest<Row extends ApprovalChat>({ instance, channelType, conversationId, threadId, conversationKind, ...rest }: Row) {
  return { ...rest, to: { instance, channelType, conversationId, threadId, conversationKind } };
}

const requestColumns = [
  'approval.id',
  'approval.agentId',
  'approval.action',
  'approval.state',
  'approval.decidedBy',
  'approval.expiresAtMs',
] as const;
const chatColumns = [
  'outboundMessage.instance',
  'outboundMessage.channelType',
  'outboundMessage.conversationId',
  'outboundMessage.threadId',
  'outboundMessage.conversationKind',
] as const;

const ofChats = query<object, Omit<ChatRequest, 'to' | 'isForOwner'> & { readonly chatJson: string }>(({ db }) =>
  db
    .selectFrom('approval')
    .select([...requestColumns, 'chatJson'])
    .$narrowType<{ chatJson: string }>()
    .where('chatJson', 'is not', null)
    .orderBy('id', 'desc'),
);
const ofOwners = query<object, Flat<Omit<ChatRequest, 'isForOwner'>>>(({ db, sql }) =>
  db
    .selectFrom('approval')
    .innerJoin('outboundMessage', (join) => join.on(sql<boolean>`op_key = 'approval-owner:' || approval.id`))
    .select([...requestColumns, ...chatColumns])
    .where('part', '=', 1)
    .orderBy('approval.id', 'desc'),
);

/** Returns the requests of all chats that are pending or were decided lately, newest first. */
export const readChatRequests = operation('channels.chatRequests', async (tx): Promise<ChatRequest[]> => {
  const own = await tx.all(ofChats, {});
  return [
    ...own.map(({ chatJson, ...request }) => ({ ...request, to: chatIn({ chatJson }), isForOwner: false })),
    ...(await tx.all(ofOwners, {})).map((request) => ({ ...nest(request), isForOwner: true })),
  ];
});

const unconfirmed = query<object, Flat<EndedQuestion>>(({ db, sql }) =>
  db
    .selectFrom('approval')
    .innerJoin('outboundMessage', (join) => join.on(sql<boolean>`op_key in ('approval:' || approval.id, 'approval-owner:' || approval.id)`))
    .select([
      'approval.id',
      'approval.agentId',
      'approval.state',
      'approval.decidedBy',
      ...chatColumns,
      'outboundMessage.conversationRef',
      'outboundMessage.principalId',
      'outboundMessage.opKey as questionKey',
    ])
    .where('part', '=', 1)
    .where('approval.chatJson', 'is not', null)
    .where('approval.state', '<>', 'pending')
    .where(
      sql<boolean>`not exists (select 1 from outbound_message as confirmed where confirmed.op_key = replace(outbound_message.op_key, ':', '-end:'))`,
    )
    .limit(100),
);

/** Returns the questions about ended requests whose chats were not notified. */
export const readUnconfirmed = operation('channels.unconfirmedRequests', async (tx): Promise<EndedQuestion[]> =>
  (await tx.all(unconfirmed, {})).map((question) => nest(question)),
);

const lastDirect = query<{ instance: string; channelType: string; senderId: string }, { conversationId: string; threadId: string | null }>(
  ({ db, sql, p }) =>
    db
      .selectFrom('channelMessage')
      .select(['conversationId', 'threadId'])
      .where('instance', '=', p('instance'))
      .where('senderId', '=', p('senderId'))
      .where('channelType', '=', p('channelType'))
      .where('isBot', '=', 0)
      // As in the index.
      .where(sql<boolean>`conversation_kind = 'direct' and verdict = 'turn'`)
      .orderBy('id', 'desc')
      .limit(1),
);

/** Returns the direct conversation of the first of some people who has written in one. */
export const findOwnerChat = operation(
  'channels.ownerChat',
  async (
    tx,
    { instance, channelType, owners }: Pick<ApprovalChat, 'instance' | 'channelType'> & { readonly owners: readonly string[] },
  ): Promise<OwnerChat | undefined> => {
    for (const senderId of owners) {
      const found = await tx.get(lastDirect, { instance, channelType, senderId });
      if (found !== undefined)
        return { to: { instance, channelType, ...found, conversationKind: 'direct' }, principalId: principalOfSender({ instance, senderId }) };
    }
    return undefined;
  },
);

/** The direct conversation of an owner. */
export interface OwnerChat {
  readonly to: ApprovalChat;
  readonly principalId: string;
}

/** Returns the chat of a request, written only by approvals. */
export const chatIn = ({ chatJson }: { readonly chatJson: string }): ApprovalChat => parseJson(chatJson) as ApprovalChat;

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

export const chatApprovalOperations = [readGates, readChatRequests, readUnconfirmed, findOwnerChat];
