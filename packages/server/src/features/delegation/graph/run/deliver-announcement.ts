import { hash } from 'node:crypto';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import { type CallContext, type Identity, isForOwners } from '../../../../kernel/call-context.ts';
import { newId, newTraceId } from '../../../../kernel/ids.ts';
import { isSilent } from '../../../../runtime/silent-answer.ts';
import type { DeliveryApi } from '../../../channels/delivery/api.ts';
import type { DurableWork, NewWork, WorkHandler, WorkItem } from '../../../unattended/durable/api.ts';
import type { SessionsApi } from '../../../conversations/sessions/api.ts';
import type { TurnOutcome, TurnsApi } from '../../../conversations/turns/api.ts';
import { endMessage, failuresOf, resultOf } from './announce.ts';
import type { LiveDeps } from './live-graph.ts';
import { type GraphOperations, graphAnnounceWork } from './operations.ts';
import { loadGraph } from '../status/read-store.ts';
import { announceIn, chatIn, type GraphRow, requesterIn, specOf } from '../rows.ts';
import type { FoundGraph } from '../store.ts';

export interface DeliveryDeps extends Pick<LiveDeps, 'db' | 'clock' | 'inbox' | 'identityOf' | 'endpoints'> {
  readonly delivery: Pick<DeliveryApi, 'sendCall' | 'wake'>;
  readonly turns: Pick<TurnsApi, 'announce'>;
  readonly durable: Pick<DurableWork, 'waitFor'>;
  readonly sessions: Pick<SessionsApi, 'existing'>;
  readonly operations: Pick<GraphOperations, 'endWithMessage'>;
}

const Payload = z.object({ graphId: z.string() });
export const maxDeliveryAttempts = 4;
const retryMs = 15_000;

/** Creates the work item that announces the end of a graph to its conversation. */
export function announcementWork({ id, agentId }: Pick<GraphRow, 'id' | 'agentId'>, atMs: number): NewWork {
  const payload = { graphId: id };
  return { id: newId('wi'), kind: graphAnnounceWork, key: id, digest: hash('sha256', id), agentId, payload, owed: true, atMs };
}

/** Announces the end of a graph to the requesting conversation by a turn of its agent, or to its owner by a message. */
export function createAnnouncementDelivery(deps: DeliveryDeps) {
  const { db, clock } = deps;

  function identityIn({ tokenId, principalId, agentId }: GraphRow): Identity | undefined {
    // Webhooks and people on channels have identities without a token.
    if (tokenId === principalId) return { principalId, tokenId, scopes: [], agents: [agentId] };
    return deps.identityOf(tokenId, principalId);
  }

  /** Notifies the owner; `undelivered` says why the conversation could not be notified. */
  async function byInbox(
    found: FoundGraph,
    item: WorkItem,
    undelivered?: { readonly errorKind: string; readonly cause: string },
  ): Promise<'settled'> {
    const atMs = clock.now();
    const announce = announceIn(found.row);
    const chat = chatIn(announce);
    // Everybody in the chat reads it.
    const forOwner = chat === undefined && isForOwners(identityIn(found.row));
    const message = endMessage(found, specOf(found.row), {
      conversationRef: undelivered !== undefined && announce.to === 'conversation' ? announce.conversationRef : null,
      forOwner,
      undelivered: forOwner ? undelivered?.cause : undelivered?.errorKind,
      atMs,
    });
    const inbox = chat === undefined ? message : deps.endpoints.address(message, chat);
    const { id, owner, fence } = item;
    if (await db.write(deps.operations.endWithMessage, { id, owner, fence, state: 'done', inbox, atMs })) deps.inbox.announce(inbox);
    return 'settled';
  }

  const handler: WorkHandler = async (item, signal) => {
    const found = await db.read(loadGraph, { id: Payload.parse(item.payload).graphId });
    if (found === undefined) return { state: 'done' };
    const { row } = found;
    const announce = announceIn(row);
    const identity = identityIn(row);
    // A turn that returns its work does not count attempts itself.
    if (announce.to !== 'conversation' || identity === undefined) return byInbox(found, item);
    if (item.attempts >= maxDeliveryAttempts) return byInbox(found, item, { errorKind: 'failed', cause: item.waiting?.cause ?? 'its turn failed' });
    const call: CallContext = { identity, traceId: newTraceId(), requestId: newId('rq'), signal, transport: 'process' };
    const conversation = () =>
      deps.sessions.existing({ conversationRef: announce.conversationRef }, call).catch((error: unknown) => {
        if (error instanceof AppError && error.code === 'not_found') return undefined;
        throw error;
      });
    const target = await conversation();
    if (target === undefined) return byInbox(found, item);
    const requester = requesterIn(row);
    const completed = found.nodes.filter(({ state }) => state === 'completed').length;
    const title = row.label === null ? '' : `Label: ${row.label}\n`;
    const { endpoint } = announce;
    const answerCalls = ({ text, turnId }: TurnOutcome) => {
      if (endpoint === undefined || isSilent(text)) return [];
      const { agentId, principalId, ref: conversationRef } = target;
      const message = {
        opKey: `announce:${item.id}`,
        to: endpoint,
        text,
        unsolicited: 'report',
        agentId,
        principalId,
        conversationRef,
        turnId,
      } as const;
      return [deps.delivery.sendCall(message)];
    };
    const outcome = await deps.turns.announce(
      {
        workId: item.id,
        owner: item.owner,
        fence: item.fence,
        origin: 'background',
        authority: requester?.origin ?? 'rpc',
        target,
        endpoint,
        ...(row.rootRunId !== null && { rootRunId: row.rootRunId }),
        ...(requester?.bounds !== undefined && { toolBounds: requester.bounds }),
        kept: true,
        operation: 'subagent',
        settle: (ended) =>
          deps.durable.waitFor(item, ended) ??
          (ended.failure === undefined ? { state: 'done', alongside: answerCalls(ended) } : { retryAfterMs: retryMs, errorKind: ended.failure.kind }),
      },
      async () => {
        // It may have been deleted in the meantime.
        if ((await conversation()) === undefined) return undefined;
        return {
          message: `Graph ${row.id}, which was started for this conversation, has ended: ${completed} of ${row.nodeCount} nodes completed. Report the outcome. The output of its agents follows.`,
          fenced: {
            text: [`${title}${resultOf(found, specOf(row))}`, failuresOf(found)].filter((part) => part !== '').join('\n\n'),
            source: 'sub-agent',
            clean: found.nodes.every(({ tainted }) => tainted === 0),
          },
        };
      },
      call,
    );
    if (endpoint !== undefined) deps.delivery.wake(endpoint.instance);
    return outcome === undefined ? byInbox(found, item) : 'settled';
  };

  async function gaveUp(item: WorkItem, errorKind: string, cause: string): Promise<void> {
    const found = await db.read(loadGraph, { id: Payload.parse(item.payload).graphId });
    if (found !== undefined) await byInbox(found, item, { errorKind, cause });
  }

  return { handler, gaveUp };
}
