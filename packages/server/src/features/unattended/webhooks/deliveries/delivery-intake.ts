import type { AuditRow } from '../../../../kernel/db/audit.ts';
import type { NewWork } from '../../durable/api.ts';
import type { SystemEvent } from '../../heartbeat/api.ts';
import type { DeliveryWork } from './run-delivery.ts';
import { deliveryKind, type DeliveryRow } from '../store.ts';

/** Data of a delivery for the storage thread, without redundancy, because each property costs both threads time. */
export interface DeliveryIntake {
  readonly delivery: DeliveryRow;
  /** Repeats of deliveries received after this time count as the same delivery. */
  readonly sameSinceMs: number;
  readonly workId: string;
  /** `NewWork.fits` of its work. */
  readonly fits: boolean;
  /** Message template of the mapping, so that its turn sees the operator's text. */
  readonly template: string | undefined;
  /** Principal of the turn. */
  readonly mappingPrincipalId: string;
  readonly auditId: string;
  /** The requester; the mapping itself when received through the routes. */
  readonly principalId: string;
  readonly event: SystemEvent | undefined;
  /** An operator's test. */
  readonly synthetic?: true | undefined;
}

/** Returns the turn requested by a delivery; undefined when the delivery has its own state. */
export function workOf({ delivery, workId, fits, template, mappingPrincipalId, synthetic }: DeliveryIntake): NewWork | undefined {
  const { id: key, mappingId, agentId, conversationRef: ref, sessionKey, message, traceId, receivedAtMs: atMs } = delivery;
  if (delivery.ownState !== null || ref === null || sessionKey === null) return undefined;
  const payload: DeliveryWork = {
    mappingId,
    target: { ref, sessionKey, agentId, principalId: mappingPrincipalId },
    message,
    traceId,
    template,
    synthetic,
  };
  return { id: workId, kind: deliveryKind, key, digest: delivery.bodyDigest, agentId, payload, fits, atMs };
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
