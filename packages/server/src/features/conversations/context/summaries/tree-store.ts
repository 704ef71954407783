import { operation, query, type Tx } from '../../../../kernel/db/operation.ts';
import { nodeColumns, type SummaryNode } from '../store.ts';

const treeHead = query<
  { ref: string },
  { conversationId: number; agentId: string; principalId: string; messageCount: number; floor: number; cutSeq: number | null; tokens: number | null }
>(({ db, p }) =>
  db
    .selectFrom('conversation')
    .leftJoin('contextState', 'contextState.conversationId', 'conversation.id')
    .select([
      'conversation.id as conversationId',
      'conversation.agentId',
      'conversation.principalId',
      'conversation.messageCount',
      'conversation.modelSeqFloor as floor',
      'contextState.cutSeq',
      'contextState.prefixTokens as tokens',
    ])
    .where('conversation.ref', '=', p('ref')),
);

export interface ConversationFilter {
  readonly agentId: string;
  /** Null means any principal. */
  readonly principalId: string | null;
  readonly limit: number;
  readonly offset: number;
}

export interface ConversationEntry {
  readonly conversationRef: string;
  readonly tenantId: string;
  readonly agentId: string;
  readonly sessionKey: string;
  readonly title: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly messageCount: number;
}

/** Returns a page of an agent's conversations, newest first, with the total count. */
export const listContexts = operation(
  'context.conversations',
  async (tx, { agentId, principalId, limit, offset }: ConversationFilter): Promise<{ conversations: ConversationEntry[]; total: number }> => {
    const own = (db: QueryBuilder) => {
      const ofAgent = db.selectFrom('conversation').where('agentId', '=', agentId);
      return principalId === null ? ofAgent : ofAgent.where('principalId', '=', principalId);
    };
    const [count] = await tx.build<{ total: number }>((db, sql) => own(db).select(sql<number>`count(*)`.as('total')));
    const conversations = await tx.build<ConversationEntry>((db) =>
      own(db)
        .select([
          'ref as conversationRef',
          'tenantId',
          'agentId',
          'sessionKey',
          'title',
          'createdAtMs as createdAt',
          'updatedAtMs as updatedAt',
          'messageCount',
        ])
        .orderBy('updatedAtMs', 'desc')
        .orderBy('id', 'desc')
        .limit(limit)
        .offset(offset),
    );
    return { conversations, total: count?.total ?? 0 };
  },
);

type QueryBuilder = Parameters<Parameters<Tx['build']>[0]>[0];

const mostNodes = 2000;
const newestNodes = query<{ conversationId: number; limit: number }, SummaryNode>(({ db, sql, p }) =>
  db
    .selectFrom('summary')
    .select(nodeColumns.map((column) => (column === 'content' ? sql<string>`substr(content, 1, 400)`.as('content') : column)))
    .where('conversationId', '=', p('conversationId'))
    .orderBy('fromSeq', 'desc')
    .orderBy('depth')
    .limit(p('limit')),
);

/** Returns the tree of a conversation with the starts of its notes; empty when it is unknown or belongs to another agent or principal. */
export const readTree = operation(
  'context.tree',
  async (
    tx,
    { ref, agentIds, principalId }: { readonly ref: string; readonly agentIds: readonly string[] | null; readonly principalId: string | null },
  ): Promise<{ nodes: SummaryNode[]; messageCount: number; cutSeq: number; notesTokens: number }> => {
    const found = await tx.get(treeHead, { ref });
    const own = found !== undefined && agentIds?.includes(found.agentId) !== false && (principalId === null || found.principalId === principalId);
    // Queried even without access, with an id that does not exist, so that the timing is the same.
    const nodes = await tx.all(newestNodes, { conversationId: own ? found.conversationId : -1, limit: mostNodes });
    if (!own) return { nodes, messageCount: 0, cutSeq: 0, notesTokens: 0 };
    return { nodes, messageCount: found.messageCount, cutSeq: Math.max(found.floor, found.cutSeq ?? 0), notesTokens: found.tokens ?? 0 };
  },
);

export const treeOperations = [listContexts, readTree];
