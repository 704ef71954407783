import { AppError } from '../../../../kernel/app-error.ts';
import { announceAudit } from '../../../../kernel/audit.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { TraceWork } from '../../../../kernel/work-trace.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import type { DurableWork } from '../../durable/api.ts';
import type { HeartbeatApi } from '../../heartbeat/api.ts';
import type { ConversationTarget } from '../../../conversations/sessions/api.ts';
import { announceDelivery } from './announce.ts';
import { auditOf, type DeliveryIntake } from './delivery-intake.ts';
import { digestFields, keyOf } from '../intake/identity.ts';
import type { Proven } from '../intake/intake.ts';
import type { Rule } from '../rules/rules.ts';
import { deliveryKind, type DeliveryRow, sameMs } from '../store.ts';

export interface DeliverDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly traceWork: TraceWork;
  readonly agents: Pick<AgentsApi, 'find' | 'defaultId'>;
  readonly durable: Pick<DurableWork, 'fits' | 'wake'>;
  readonly heartbeat: HeartbeatApi;
  /** Commits a delivery together with its effects. */
  readonly acceptDelivery: Operation<DeliveryIntake, { readonly isNew: boolean; readonly isKnownBody: boolean }>;
  /** Returns the conversation of a key in a principal's partition. */
  readonly targetOf: (agentId: string, principalId: string, key: ReturnType<typeof keyOf>) => ConversationTarget;
  /** Returns the key rendered by a template, from the session key derived from it. */
  readonly renderedKeyOf: (sessionKey: string) => string;
}

/** A delivery to accept, received through the routes or requested by an operator. */
export interface Delivery {
  readonly rule: Rule;
  readonly agentId: string;
  readonly target: ConversationTarget | undefined;
  readonly message: string;
  readonly isPing: boolean;
  readonly row: Pick<DeliveryRow, 'liveKey' | 'senderId' | 'bodyDigest' | 'bodyBytes' | 'remoteAddress' | 'traceId' | 'replayOf'>;
  /** The requester; the mapping itself when received through the routes. */
  readonly principalId: string;
  /** An operator's test. */
  readonly synthetic?: true;
}

/** Maximum stored characters of a sender's id. */
const shownId = 256;

/** Accepts deliveries durably: once it resolves, nothing can be lost. */
export function createDeliver(deps: DeliverDeps) {
  const { db, bus, clock, log, agents } = deps;

  /** Returns the agent of the mapping, or the one of an earlier delivery. */
  function agentOf({ mapping }: Rule, agentId = mapping.agentId ?? agents.defaultId): string {
    // The sender may retry; nobody asked for a turn of another agent.
    if (agents.find(agentId) === undefined) throw new AppError('unavailable', `Agent ${agentId} of mapping ${mapping.id} does not exist`);
    return agentId;
  }

  function targetOf({ mapping, principalId }: Rule, agentId: string, renderedKey: string): ConversationTarget | undefined {
    return mapping.action === 'wake' ? undefined : deps.targetOf(agentId, principalId, keyOf(principalId, renderedKey));
  }

  /** Returns the keys that identify the conversation in logs and lists; the printed key encodes `:` and `%` of the rendered one. */
  function keysOf(target: Pick<ConversationTarget, 'sessionKey'> | undefined) {
    return target === undefined ? {} : { sessionKey: target.sessionKey, renderedKey: deps.renderedKeyOf(target.sessionKey) };
  }

  async function take(delivery: Delivery): Promise<{ readonly id: string; readonly isKnownBody: boolean; readonly isNew: boolean }> {
    const { rule, agentId, target, message, row } = delivery;
    const { id: mappingId, action, wakeMode, messageTemplate } = rule.mapping;
    const id = newId('wd');
    const atMs = clock.now();
    const isWake = action === 'wake' && !delivery.isPing;
    const ownState = delivery.isPing ? 'ignored' : isWake ? 'done' : null;
    const intake: DeliveryIntake = {
      delivery: {
        ...row,
        id,
        mappingId,
        action,
        agentId,
        message,
        receivedAtMs: atMs,
        ownState,
        conversationRef: target?.ref ?? null,
        sessionKey: target?.sessionKey ?? null,
      },
      sameSinceMs: clock.ageNow() - sameMs,
      workId: newId('wi'),
      fits: ownState === null && deps.durable.fits(deliveryKind),
      template: messageTemplate,
      mappingPrincipalId: rule.principalId,
      auditId: newId('au'),
      principalId: delivery.principalId,
      synthetic: delivery.synthetic,
      event: isWake
        ? { agentId, text: message, source: 'webhook', opKey: id, ...(wakeMode !== 'next-heartbeat' && { urgent: 'hook' }), atMs }
        : undefined,
    };
    const added = await db.write(deps.acceptDelivery, intake);
    const traced = {
      startedAtMs: atMs,
      traceId: row.traceId,
      principalId: rule.principalId,
      synthetic: delivery.synthetic === true,
      ...(target !== undefined && { conversationRef: target.ref, sessionKey: target.sessionKey }),
    };
    if (!added.isNew) {
      deps.traceWork({
        kind: 'delivery',
        ...traced,
        agentId,
        origin: 'webhook',
        channelType: 'webhook',
        channelId: mappingId,
        outcome: 'skipped',
        endReason: 'filtered',
        facts: { mapping: mappingId, duplicate: true },
      });
      return { id, ...added };
    }
    log.debug({ deliveryId: id, mapping: mappingId, agentId, ...keysOf(target) }, 'Webhook accepted');
    announceAudit(bus, auditOf(intake));
    const isTest = delivery.synthetic === true;
    const state = ownState ?? 'accepted';
    announceDelivery(
      deps,
      { deliveryId: id, mapping: mappingId, agentId, state, ...(!isTest && { received: true }) },
      { ...traced, facts: { action } },
    );
    if (ownState === null) deps.durable.wake(deliveryKind);
    if (isWake) {
      const admission = deps.heartbeat.wake({ agentId, reason: 'hook', mode: wakeMode ?? 'now', bypassSpacing: wakeMode !== 'next-heartbeat' });
      if (!admission.accepted && admission.status === 'refused')
        log.info({ mapping: mappingId, agentId, refusal: admission.refusal }, 'Webhook triggered no heartbeat');
    }
    return { id, ...added };
  }

  /** Accepts a delivery from the routes. */
  async function accept(proven: Proven): Promise<void> {
    const { rule, reading, bodyDigest, bodyBytes, remoteAddress, traceId } = proven;
    const agentId = agentOf(rule);
    const { isNew, isKnownBody } = await take({
      rule,
      agentId,
      target: targetOf(rule, agentId, reading.sessionKey),
      message: reading.message,
      isPing: reading.isPing,
      row: {
        liveKey: liveKeyOf(proven),
        senderId: proven.senderId?.slice(0, shownId) ?? null,
        bodyDigest,
        bodyBytes,
        remoteAddress,
        traceId,
        replayOf: null,
      },
      principalId: rule.principalId,
    });
    if (isNew && isKnownBody && isSuspicious(proven)) warn(proven);
  }

  function warn({ rule, remoteAddress, senderId }: Proven): void {
    const { id } = rule.mapping;
    log.warn({ mapping: id, remoteAddress, senderId }, 'Webhook repeats the body of an earlier one under a new unsigned id or time');
    bus.emit('security:warn', {
      category: 'webhook_replay',
      message: `Mapping ${id} accepted the body of an earlier delivery again, under a new unsigned id or time: it may be a replay`,
      ...(remoteAddress !== null && { remoteAddress }),
      timestamp: clock.now(),
    });
  }

  return { agentOf, targetOf, keysOf, take, accept };
}
export type Deliver = ReturnType<typeof createDeliver>;

/**
 * Returns the key shared by repeats of a delivery (reliability §0.2); null when repeats cannot be recognised. All deliveries with the same
 * body share the part before the dot.
 */
function liveKeyOf({ rule, bodyDigest, senderId, timestamp }: Proven): string | null {
  const { id, replay } = rule.mapping;
  const body = liveDigest('body', [id, bodyDigest]);
  if (replay === 'body') return `${body}.`;
  if (senderId !== undefined) return `${body}.${liveDigest('id', [senderId])}`;
  return timestamp === undefined ? null : `${body}.${liveDigest('time', [timestamp])}`;
}

/** Returns 132 bits of a digest. Only a sender who signs both texts could collide them, and short keys make commits write fewer pages. */
function liveDigest(purpose: string, fields: readonly string[]): string {
  return digestFields(purpose, fields).slice(0, 22);
}

/** Returns whether anyone who saw an earlier delivery could have sent this one. */
function isSuspicious({ rule, senderId, timestamp, isTimestampSigned }: Proven): boolean {
  if (rule.mapping.replay !== 'exact') return false;
  return senderId !== undefined || (timestamp !== undefined && !isTimestampSigned);
}
