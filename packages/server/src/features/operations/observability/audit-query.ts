import type { AuditEntry } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { parseJson } from '../../../kernel/json.ts';
import { queryAudit, type StoredAudit } from './audit-store.ts';

const maxRows = 1000;
const Metadata = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]));

/** Handler of `obs.audit.query` (json-rpc.md §4). */
export function createAuditQuery(deps: {
  readonly db: Db;
  /** Removes what is a secret or looks like one. */
  readonly redactText: (text: string) => string;
}): HandlersOf<'obs.audit.query'> {
  return {
    'obs.audit.query': async (params, call) => {
      if (call.agentCaller !== undefined) throw new AppError('denied', 'The audit is for administrators, not for agents');
      const { principalId } = params;
      const page = await deps.db.read(queryAudit, {
        fromMs: params.sinceMs ?? null,
        toMs: params.untilMs ?? null,
        action: params.actionType ?? null,
        classification: params.classification ?? null,
        outcome: params.outcome ?? null,
        target: params.target ?? null,
        principalIds: [
          ...(principalId === undefined ? [] : [principalId]),
          ...(call.identity.agents === undefined ? [] : [call.identity.principalId]),
        ],
        before: params.before ?? null,
        limit: Math.min(params.limit, maxRows),
      });
      if (page === undefined) throw new AppError('not_found', 'There is no audit row of this id', { param: 'before' });
      return { rows: page.rows.map((row) => entryOf(row, deps.redactText)), hasMore: page.hasMore };
    },
  };
}

function entryOf(row: StoredAudit, redactText: (text: string) => string): AuditEntry {
  const scrub = (value: z.output<typeof Metadata>[string]) => {
    if (Array.isArray(value)) return value.map(redactText);
    return typeof value === 'string' ? redactText(value) : value;
  };
  const metadata = row.metadataJson === null ? {} : Metadata.parse(parseJson(row.metadataJson));
  const refs = Object.fromEntries(Object.entries({ ...metadata, traceId: row.traceId }).map(([name, value]) => [name, scrub(value)]));
  return {
    id: row.id,
    at: row.atMs,
    kind: kindOf(row),
    classification: row.classification,
    outcome: row.outcome,
    severity: severityOf(row),
    action: row.action,
    actor: row.principalId,
    ...(row.target !== null && { target: redactText(row.target) }),
    refs,
  };
}

function kindOf({ action, classification }: StoredAudit): AuditEntry['kind'] {
  if (/^(?:admin\.)?approval\./.test(action)) return 'approval';
  if (/^(?:tokens|auth)\./.test(action)) return 'auth';
  if (action.startsWith('skill.vet')) return 'skill_vet';
  return classification === 'security' ? 'security' : 'audit';
}

function severityOf({ outcome, classification }: StoredAudit): AuditEntry['severity'] {
  if (outcome === 'failure') return 'error';
  return outcome === 'denied' || classification === 'destructive' ? 'warning' : 'info';
}
