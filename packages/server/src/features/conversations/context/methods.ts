import type { ResultInput } from '@gatehouse/contract';
import { type CallContext, isAdmin, ownerOf } from '../../../kernel/call-context.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { SummaryNode } from './store.ts';
import { listContexts, readTree } from './summaries/tree-store.ts';

export type ContextMethods = HandlersOf<'context.conversations' | 'context.tree'>;

export interface ContextMethodsDeps {
  readonly db: Db;
  readonly agents: AgentsApi;
}

const previewLength = 200;

/** Implements `context.conversations` and `context.tree` (json-rpc.md §4). */
export function createContextMethods({ db, agents }: ContextMethodsDeps): ContextMethods {
  /** Returns the calling agent, or the default agent for other callers; undefined when it is out of reach. */
  function agentOf({ identity, agentCaller }: CallContext): string | undefined {
    if (agentCaller !== undefined) return agentCaller.agentId;
    const [only, ...others] = identity.agents ?? [agents.defaultId];
    if (others.length === 0) return only;
    return identity.agents?.includes(agents.defaultId) === true ? agents.defaultId : undefined;
  }
  const ownerReached = (call: CallContext) => (isAdmin(call) ? null : ownerOf(call));

  return {
    'context.conversations': async ({ limit, offset }, call) => {
      const agentId = agentOf(call);
      return agentId === undefined
        ? { conversations: [], total: 0 }
        : db.read(listContexts, { agentId, principalId: ownerReached(call), limit, offset });
    },
    'context.tree': async ({ conversationRef }, call) => {
      // The storage thread filters with the same query, so inaccessible and unknown conversations are indistinguishable.
      // A reference names its agent, so only calling agents and tokens limited to agents are restricted.
      const agentIds = call.agentCaller === undefined ? (call.identity.agents ?? null) : [call.agentCaller.agentId];
      const tree = await db.read(readTree, { ref: conversationRef, agentIds, principalId: ownerReached(call) });
      return { ...tree, conversationRef, nodes: printTree(tree.nodes) };
    },
  };
}

function printTree(nodes: readonly SummaryNode[]): ResultInput<'context.tree'>['nodes'] {
  const shown = new Set(nodes.map((node) => node.id));
  const ordered = nodes.toSorted((a, b) => a.fromSeq - b.fromSeq || b.depth - a.depth);
  const children = Map.groupBy(ordered, (node) => node.parentId);
  return ordered.map(({ id, kind, depth, tokenCount, content, fromSeq, toSeq, parentId, taint, model, createdAtMs }) => ({
    summaryId: id,
    kind,
    depth,
    tokenCount,
    contentPreview: content.slice(0, previewLength).toWellFormed(),
    fromSeq,
    toSeq,
    childIds: (children.get(id) ?? []).map((child) => child.id),
    parentIds: parentId !== null && shown.has(parentId) ? [parentId] : [],
    taint,
    model,
    createdAt: createdAtMs,
  }));
}
