import type { EventPayload } from '@gatehouse/contract';
import type { CallContext } from './call-context.ts';
import type { Clock } from './clock.ts';
import { appendAudit, type AuditRow } from './db/audit.ts';
import type { Db } from './db/db.ts';
import { operation } from './db/operation.ts';
import type { EventBus } from './event-bus.ts';
import { newId } from './ids.ts';

type AuditPayload = EventPayload<'audit:event'>;
type Audited = Pick<AuditPayload, 'actionType' | 'classification'> & Partial<Pick<AuditPayload, 'outcome' | 'target' | 'metadata'>>;

/** Returns a row for `appendAudit`, which commits it in the transaction of the change that it records. */
export function auditRow(call: CallContext, atMs: number, what: Audited): AuditRow {
  return {
    id: newId('au'),
    atMs,
    principalId: call.identity.principalId,
    action: what.actionType,
    classification: what.classification,
    outcome: what.outcome ?? 'success',
    target: what.target,
    metadata: call.identity.person === undefined ? what.metadata : { ...what.metadata, tokenId: call.identity.tokenId },
    traceId: call.traceId,
  };
}

/** Announces a committed row. */
export function announceAudit(bus: EventBus, row: AuditRow): void {
  if (!bus.wants('audit:event')) return;
  bus.emit('audit:event', {
    auditId: row.id,
    actionType: row.action,
    classification: row.classification,
    outcome: row.outcome,
    principalId: row.principalId,
    ...(row.target !== undefined && { target: row.target }),
    ...(row.metadata !== undefined && { metadata: row.metadata }),
    timestamp: row.atMs,
  });
}

/** Writes an audit row alone, for changes that are not rows themselves (a log level, a restart). */
export const writeAudit = operation('audit.write', async (tx, row: AuditRow): Promise<void> => appendAudit(tx, row));

/** Writes and announces a row in its own transaction. */
export async function recordAudit(
  deps: { readonly db: Db; readonly bus: EventBus; readonly clock: Clock },
  call: CallContext,
  what: Audited,
): Promise<void> {
  const row = auditRow(call, deps.clock.now(), what);
  await deps.db.write(writeAudit, row);
  announceAudit(deps.bus, row);
}
