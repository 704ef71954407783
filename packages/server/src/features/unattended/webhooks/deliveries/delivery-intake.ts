import type { AuditRow } from '../../../../kernel/db/audit.ts';
import type { NewWork } from '../../durable/api.ts';
import type { SystemEvent } from '../../heartbeat/api.ts';
import type { DeliveryWork } from './run-delivery.ts';
import { deliveryKind, type DeliveryRow } from '../store.ts';

/** What goes to the storage thread for a delivery: nothing twice, because each property of it costs both threads time. */
export interface DeliveryIntake {
  readonly delivery: DeliveryRow;
  /** What came later counts as the same delivery. */
  readonly sameSinceMs: number;
  readonly workId: string;
  /** Of the mapping: its turn is told what the operator wrote. */
  readonly template: string | undefined;
  /** Whose turn it will be. */
  readonly mappingPrincipalId: string;
  readonly auditId: string;
  /** Who asked for it; the mapping itself when it came by the routes. */
  readonly principalId: string;
  readonly event: SystemEvent | undefined;
}

/** The turn that a delivery asks for; undefined when it says itself how it stands. */
export function workOf({ delivery, workId, template, mappingPrincipalId }: DeliveryIntake): NewWork | undefined {
  const { id: key, mappingId, agentId, conversationRef: ref, sessionKey, message, traceId, receivedAtMs: atMs } = delivery;
  if (delivery.ownState !== null || ref === null || sessionKey === null) return undefined;
  const payload: DeliveryWork = { mappingId, target: { ref, sessionKey, agentId, principalId: mappingPrincipalId }, message, traceId, template };
  return { id: workId, kind: deliveryKind, key, digest: delivery.bodyDigest, agentId, payload, atMs };
}

export function auditOf({ delivery, auditId, principalId }: DeliveryIntake): AuditRow {
  const { id: target, mappingId: mapping, ownState, action, bodyBytes: bytes } = delivery;
  return {
    id: auditId,
    atMs: delivery.receivedAtMs,
    principalId,
    action: delivery.replayOf === null ? 'webhook.received' : 'webhook.replayed',
    classification: 'mutate',
    outcome: 'success',
    target,
    metadata: { mapping, effect: ownState === 'ignored' ? 'none' : action, bytes },
    traceId: delivery.traceId,
  };
}
