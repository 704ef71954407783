import type { Clock } from '../../../../kernel/clock.ts';
import { type IdentityOf, isForOwners } from '../../../../kernel/call-context.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { DurableWork, WorkItem } from '../../../unattended/durable/api.ts';
import type { EndpointsApi } from '../../../channels/delivery/api.ts';
import type { InboxApi } from '../../../unattended/inbox/api.ts';
import { announceIn, chatIn, type GraphRow, specOf } from '../rows.ts';
import type { FoundGraph, GraphEnd } from '../store.ts';
import { type EndedGraph, endMessage } from './announce.ts';
import { announcementWork } from './deliver-announcement.ts';
import { type GraphAnnouncement, graphAnnounceWork, type GraphOperations } from './operations.ts';

export interface CloseDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly durable: Pick<DurableWork, 'wake'>;
  readonly inbox: InboxApi;
  readonly endpoints: Pick<EndpointsApi, 'address'>;
  readonly identityOf: IdentityOf;
  readonly operations: Pick<GraphOperations, 'close'>;
}

interface Closing {
  readonly row: GraphRow;
  readonly nodes: EndedGraph['nodes'];
  readonly end: Omit<GraphEnd, 'id' | 'atMs'>;
  /** Absent when the graph is ended from outside its handler. */
  readonly claim?: WorkItem;
}

/** Writes the end of a graph with its single announcement; false when it has already ended differently. */
export async function closeGraph(deps: CloseDeps, closing: Closing): Promise<boolean> {
  const { db, clock, operations } = deps;
  const { row, nodes, end, claim } = closing;
  const atMs = clock.now();
  const announcement = announcementOf(deps, { row: { ...row, state: end.state, cancelReason: end.reason }, nodes }, row, atMs);
  const closed = await db.write(operations.close, {
    ...(claim !== undefined && { claim: { id: claim.id, owner: claim.owner, fence: claim.fence } }),
    ...announcement,
    end: { ...end, id: row.id, atMs },
    errorKind: end.reason ?? (end.state === 'completed' ? null : 'failed'),
  });
  if (closed === undefined) return false;
  if (closed.stoppedBy !== undefined) return closeGraph(deps, { ...closing, end: { ...end, state: 'cancelled', reason: closed.stoppedBy } });
  if (closed.delivered && announcement.inbox !== undefined) deps.inbox.announce(announcement.inbox);
  if (announcement.work !== undefined) deps.durable.wake(graphAnnounceWork);
  announceEnd(deps, closed.found);
  return true;
}

function announcementOf(deps: Pick<CloseDeps, 'identityOf' | 'endpoints'>, found: EndedGraph, row: GraphRow, atMs: number): GraphAnnouncement {
  const announce = announceIn(row);
  const conversationRef = announce.to === 'conversation' ? announce.conversationRef : null;
  const chat = chatIn(announce);
  // Everybody in the chat reads it.
  const forOwner = chat === undefined && isForOwners(deps.identityOf(row.tokenId, row.principalId));
  const message = endMessage(found, specOf(row), { conversationRef, forOwner, atMs });
  const inbox = chat === undefined ? message : deps.endpoints.address(message, chat);
  // A conversation is notified of results it can continue with; failed or stopped graphs need no model call.
  return announce.to === 'conversation' && found.row.state === 'completed' ? { work: announcementWork(row, atMs) } : { inbox };
}

function announceEnd({ bus, clock }: Pick<CloseDeps, 'bus' | 'clock'>, { row, nodes }: FoundGraph): void {
  const { id, agentId, state, startedAtMs, endedAtMs, nodeCount, cancelReason } = row;
  const count = (of: string) => nodes.filter((node) => node.state === of).length;
  bus.emit(
    'graph:completed',
    {
      graphId: id,
      agentId,
      status: state,
      durationMs: Math.max(0, (endedAtMs ?? 0) - (startedAtMs ?? 0)),
      nodeCount,
      nodesCompleted: count('completed'),
      nodesFailed: count('failed'),
      nodesSkipped: count('skipped'),
      ...(cancelReason !== null && { cancelReason }),
      timestamp: clock.now(),
    },
    row.principalId,
  );
}
