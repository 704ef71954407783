import type { SessionKey } from '@gatehouse/contract';
import type * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { auditRow } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { AuditRow } from '../../../kernel/db/audit.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { Approvals } from './approvals.ts';
import { systemDecider } from './deciders.ts';
import { decide, type Deciding, forgetDenials, listPending, type Made, type RequestRow } from './store.ts';
import type { Outcome } from './requests/waiting.ts';

export type ApprovalMethods = HandlersOf<`admin.approval.${'pending' | 'resolve' | 'resolveAll' | 'clearDenialCache'}`>;

export function createApprovalMethods(deps: {
  readonly db: Db;
  readonly clock: Clock;
  readonly hideSecrets: (text: string) => string;
  /** Formats a session key given in either form. */
  readonly printKey: (key: z.output<typeof SessionKey>) => string;
  /** Called after the commit. */
  readonly onDecided: (made: Made, outcome: Outcome) => void;
  readonly onAudit: (audit: AuditRow) => void;
}): { readonly methods: ApprovalMethods; readonly decideInChat: Approvals['decideInChat'] } {
  const { db, clock } = deps;

  async function resolve(
    call: CallContext,
    choice: { readonly approved: boolean; readonly approvedBy: string; readonly reason?: string | undefined },
    meant: Pick<Deciding, 'id' | 'sessionKey' | 'via'>,
  ) {
    const outcome = {
      approved: choice.approved,
      by: choice.approvedBy,
      reason: choice.reason === undefined ? null : deps.hideSecrets(choice.reason),
    };
    const made = await db.write(decide, {
      ...meant,
      ...outcome,
      agentIds: reachOf(call),
      atMs: clock.ageNow(),
      principalId: call.identity.principalId,
      traceId: call.traceId,
    });
    deps.onDecided(made, outcome);
    return { ...made, outcome };
  }

  const methods: ApprovalMethods = {
    'admin.approval.pending': async ({ after }, call) => {
      const { rows, total } = await db.read(listPending, { agentIds: reachOf(call), atMs: clock.ageNow(), after: after ?? '', pageCharacters });
      return { requests: rows.map(shown), total };
    },

    'admin.approval.resolve': async ({ requestId, ...choice }, call) => {
      const { found, decided, outcome } = await resolve(call, choice, { id: requestId });
      const [row] = found;
      if (row === undefined)
        throw new AppError('not_found', 'There is no such request; it may have been decided long ago, or expired', { param: 'requestId' });
      if (decided.length === 0)
        throw new AppError(
          'conflict',
          `The request was already ${row.state === 'approved' ? 'approved' : 'denied'} by ${row.decidedBy ?? systemDecider.timeout}`,
          {
            param: 'requestId',
          },
        );
      return { requestId, approved: outcome.approved, approvedBy: outcome.by, reason: outcome.reason };
    },

    'admin.approval.resolveAll': async ({ sessionKey, ...choice }, call) => {
      const { decided } = await resolve(call, choice, { sessionKey: sessionKey && deps.printKey(sessionKey) });
      return { resolved: decided.length, requestIds: decided.map(({ id }) => id) };
    },

    'admin.approval.clearDenialCache': async ({ sessionKey }, call) => {
      const audit = auditRow(call, clock.now(), { actionType: 'admin.approval.clearDenialCache', classification: 'security' });
      await db.write(forgetDenials, { agentIds: reachOf(call), sessionKey: sessionKey && deps.printKey(sessionKey), audit });
      deps.onAudit(audit);
      return { cleared: true as const };
    },
  };
  return {
    methods,
    async decideInChat({ id, approved, by }, call) {
      const { decided } = await resolve(call, { approved, approvedBy: by }, { id, via: 'channel' });
      return decided.length > 0;
    },
  };
}

/** Characters of arguments in one page, so that it does not hold up the main thread. */
const pageCharacters = 1_000_000;

/** Agents whose calls the caller decides about; null: all. No agent approves the acts of an agent. */
function reachOf(call: CallContext): readonly string[] | null {
  if (call.agentCaller !== undefined) throw new AppError('denied', 'Approvals are for administrators, not for agents');
  return call.identity.agents ?? null;
}

function shown(row: RequestRow) {
  return {
    requestId: row.id,
    toolName: row.tool,
    action: row.action,
    params: parseJson(row.paramsJson ?? '{}'),
    paramsBytes: row.paramsBytes,
    digest: row.digest,
    reason: row.reason,
    agentId: row.agentId,
    sessionKey: row.sessionKey,
    conversationRef: row.conversationRef,
    origin: row.origin,
    trustLevel: row.trustLevel,
    createdAt: row.createdAtMs,
    timeoutMs: row.timeoutMs,
    expiresAt: row.expiresAtMs,
  };
}
