import type { RootCauseCode } from '@gatehouse/contract';
import type { StoredRecord } from '../../records.ts';
import type { Case, Cause, Match, Rule } from './case.ts';

/** What each failure kind of a turn means (`runtime/turn-failure.ts`). */
const failureCodes: Readonly<Record<string, RootCauseCode>> = {
  timeout: 'prompt_timeout',
  context_exhausted: 'context_exhausted',
  context_length: 'context_exhausted',
  output_starved: 'output_starved',
  auth: 'provider_credentials_refused',
  billing: 'provider_billing_refused',
  rate_limit: 'provider_rate_limited',
  overloaded: 'provider_overloaded',
  network: 'provider_unreachable',
  server: 'provider_failed',
  bad_response: 'provider_failed',
  oversized: 'provider_failed',
  bad_request: 'provider_rejected_request',
  content_filter: 'content_filtered',
  circuit_open: 'model_circuit_open',
  budget_exceeded: 'budget_exceeded',
  max_steps: 'max_steps_reached',
  context_loop: 'context_loop',
  denial_breaker: 'approvals_denied_repeatedly',
  revoked: 'authority_revoked',
  aborted: 'turn_aborted',
  unknown: 'daemon_interrupted',
  too_many_resumes: 'daemon_interrupted',
  error: 'internal_error',
  not_stored: 'internal_error',
};

/** The same for end reasons, for records without an error. */
const endCodes: Readonly<Record<string, RootCauseCode>> = {
  timeout: 'prompt_timeout',
  context_exhausted: 'context_exhausted',
  output_starved: 'output_starved',
  background_pending: 'background_pending',
  circuit_open: 'model_circuit_open',
  budget_exceeded: 'budget_exceeded',
  max_steps: 'max_steps_reached',
  context_loop: 'context_loop',
  provider_degraded: 'provider_failed',
  aborted: 'turn_aborted',
  unknown: 'daemon_interrupted',
  error: 'internal_error',
};

/** Returns why a turn ended as it did; undefined when it ended well. */
function endOf(record: StoredRecord): Cause | undefined {
  const { outcome, endReason, error, model } = record;
  if (outcome === 'ok' && endReason !== 'background_pending') return undefined;
  const kind = error?.kind;
  const code = (kind === undefined ? undefined : failureCodes[kind]) ?? (endReason === null ? undefined : endCodes[endReason]);
  // Another owner wrote the end of the turn: a stop, or the daemon that took over.
  if (kind === 'taken_over' && endReason !== 'aborted') return { code: 'daemon_interrupted' };
  if (code === undefined || code === 'turn_aborted') return undefined;
  if (code === 'max_steps_reached' && outcome !== 'failed') return undefined;
  return { code, subject: subjectOf(code, record, model) };
}

function subjectOf(code: RootCauseCode, { conversationRef, steps }: StoredRecord, model: string | null): string | undefined {
  if (code === 'context_exhausted' || code === 'background_pending') return conversationRef ?? undefined;
  const lastCall = steps.findLast(({ kind }) => kind === 'model' || kind === 'attempt')?.name;
  return lastCall ?? model ?? undefined;
}

const hasEvent =
  (event: string) =>
  ({ kind, facts }: StoredRecord) =>
    kind === 'autonomy' && facts['event'] === event;

function killed({ records, rows, focus }: Case): Match | undefined {
  const record = records.find(hasEvent('killed'));
  const run = rows.runs.find(({ endReason }) => endReason === 'killed');
  if (record !== undefined) return { subject: record.rootRunId ?? undefined };
  // A sub-agent that was killed does not stop the turn that started it.
  const isOver = focus === undefined || focus.outcome === 'cancelled' || focus.refs['runId'] === run?.id;
  return run !== undefined && isOver ? { subject: run.id } : undefined;
}

function revoked({ records, rows, focus }: Case): Match | undefined {
  const record = records.find(hasEvent('revoked'));
  const isStopped = focus === undefined || focus.error?.kind === 'revoked' || (focus.outcome === 'cancelled' && rows.root?.state === 'revoked');
  return record !== undefined || (isStopped && (focus?.error?.kind === 'revoked' || rows.root?.state === 'revoked'))
    ? { subject: record?.rootRunId ?? rows.root?.id }
    : undefined;
}

function orphaned({ records, rows }: Case): Match | undefined {
  const record = records.find(hasEvent('orphaned'));
  if (record !== undefined) return { subject: record.rootRunId ?? undefined };
  const run = rows.runs.find(({ endReason }) => endReason === 'ghost_sweep');
  return run && { subject: run.id };
}

function waiting({ focus, rows }: Case): Match | undefined {
  const pending = rows.approvals.find(({ state }) => state === 'pending');
  if (focus?.outcome !== 'waiting' && pending === undefined) return undefined;
  return { subject: pending?.id ?? focus?.refs['approvalId'] };
}

/** How turns end, each code as its own rule so that every one has a place in the order. */
function endedWith(code: RootCauseCode): Rule {
  return {
    code,
    find({ focus, records, rows }) {
      const own = focus === undefined ? undefined : endOf(focus);
      if (own !== undefined) return own.code === code ? own : undefined;
      if (focus === undefined) {
        const { turn } = rows;
        if (turn === undefined || turn.state === 'completed' || turn.state === 'accepted' || turn.state === 'running') return undefined;
        const found = turn.state === 'unknown' ? 'daemon_interrupted' : (failureCodes[turn.failureKind ?? ''] ?? endCodes[turn.finishReason ?? '']);
        return found === code ? { where: turn.id } : undefined;
      }
      // The failure of a sub-agent or a graph node is explained by how its own turn ended.
      const below = records.findLast(
        (one) => one.kind === 'turn' && one.outcome === 'failed' && one.id !== focus.id && one.refs['runId'] !== undefined,
      );
      const end = below === undefined ? undefined : endOf(below);
      return end?.code === code ? { ...end, where: below?.refs['runId'] } : undefined;
    },
  };
}

const plainEnds = [
  'prompt_timeout',
  'context_exhausted',
  'output_starved',
  'background_pending',
  'provider_credentials_refused',
  'provider_billing_refused',
  'provider_rate_limited',
  'provider_overloaded',
  'provider_unreachable',
  'provider_failed',
  'provider_rejected_request',
  'content_filtered',
  'model_circuit_open',
  'budget_exceeded',
  'max_steps_reached',
  'context_loop',
] as const satisfies readonly RootCauseCode[];

/** How the turn ended, and who ended it. */
export const endRules: readonly Rule[] = [
  { code: 'run_killed', find: killed },
  { code: 'authority_revoked', find: revoked },
  { code: 'run_orphaned', find: orphaned },
  endedWith('approvals_denied_repeatedly'),
  { code: 'approval_waiting', find: waiting },
  ...plainEnds.map(endedWith),
  {
    code: 'turn_aborted',
    find: ({ focus }) => (focus?.outcome === 'cancelled' || focus?.endReason === 'aborted' ? { subject: focus.id } : undefined),
  },
  endedWith('daemon_interrupted'),
  endedWith('internal_error'),
];
