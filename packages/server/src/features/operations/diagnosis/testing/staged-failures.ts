import type { RootCauseCode } from '@gatehouse/contract';
import { canary, failedCall, type RecordSpec, type StepSpec } from './records.ts';

export interface StagedFailure {
  readonly title: string;
  /** Null: nothing points to a problem. */
  readonly code: RootCauseCode | null;
  /** Records of one session, oldest first; the last turn is the one that is explained. */
  readonly records: readonly RecordSpec[];
}

const refusals = {
  auth: 401,
  billing: 402,
  rate_limit: 429,
  overloaded: 529,
  server: 500,
  network: undefined,
  timeout: undefined,
  bad_request: 400,
} as const;

function attempt(kind: keyof typeof refusals): StepSpec[] {
  const status = refusals[kind];
  const error = { kind, text: `The provider said ${canary}`, ...(status !== undefined && { status }) };
  return [
    { kind: 'model', name: 'mock/mock-fast', outcome: 'error', error },
    { kind: 'attempt', name: 'mock/mock-fast', parent: 0, outcome: 'error', error },
  ];
}

const failed = (kind: string, endReason: string, steps: readonly StepSpec[] = []): RecordSpec => ({
  outcome: 'failed',
  endReason,
  error: { kind, text: canary },
  steps,
});

const times = (count: number, step: StepSpec) => Array.from({ length: count }, () => step);
const offLoad = (chars: number): StepSpec => ({ kind: 'off_load', name: 'web_fetch', facts: { chars, pointer: '.gatehouse/offload/a' } });
const recall = (facts: NonNullable<StepSpec['facts']>): StepSpec => ({ kind: 'recall', name: 'memory', facts });
const terminal = (action: string, terminalId = 'term_1', isOpen = true): StepSpec => ({
  kind: 'tool',
  name: 'terminal',
  facts: { action, terminalId, isOpen },
});
const denied = (kind: string): StepSpec => ({ ...failedCall('write', kind), outcome: 'denied' });
const script = (facts: NonNullable<StepSpec['facts']>): StepSpec => ({ ...failedCall('orchestrate'), facts });

/** One failure for each code that records alone can show, each followed by its look-alikes. */
export const stagedFailures: readonly StagedFailure[] = [
  {
    title: 'five failed calls of one tool',
    code: 'breaker_opened_repeated_failure',
    records: [{ outcome: 'degraded', steps: times(5, failedCall('read')) }],
  },
  {
    title: 'four failed calls of one tool and four of another',
    code: 'tool_failed',
    records: [{ outcome: 'degraded', steps: [...times(4, failedCall('read')), ...times(4, failedCall('grep'))] }],
  },
  {
    title: 'a breaker of a model that opened',
    code: 'breaker_opened_repeated_failure',
    records: [
      failed('server', 'provider_degraded', [
        ...attempt('server'),
        { kind: 'breaker', name: 'mock/mock-fast', facts: { event: 'opened', failures: 5 } },
      ]),
    ],
  },
  {
    title: 'a breaker that closed again',
    code: null,
    records: [{ steps: [{ kind: 'breaker', name: 'mock/mock-fast', facts: { event: 'reset', failures: 5 } }] }],
  },
  {
    title: 'three results in files, one of 32,000 characters',
    code: 'context_bloat',
    records: [{ steps: [offLoad(9_000), offLoad(32_000), offLoad(9_000)] }],
  },
  { title: 'three results in files, none of 32,000 characters', code: null, records: [{ steps: times(3, offLoad(31_999)) }] },
  { title: 'two large results in files', code: null, records: [{ steps: times(2, offLoad(90_000)) }] },
  {
    title: 'a program or module that is not installed',
    code: 'exec_dependency',
    records: [{ outcome: 'degraded', steps: [failedCall('exec', 'missing_dependency', '[exit code 127]')] }],
  },
  {
    title: 'a failed command that only prints such a sentence',
    code: 'tool_failed',
    records: [{ outcome: 'degraded', steps: [failedCall('exec', 'tool_error', "3: Cannot find module 'left-pad'")] }],
  },
  { title: 'a failed script', code: 'orchestrate_failed', records: [{ outcome: 'degraded', steps: [script({ failureClass: 'nonzero_exit' })] }] },
  {
    title: 'a call of a script that failed inside a successful script',
    code: 'tool_failed',
    records: [
      {
        outcome: 'degraded',
        steps: [
          { kind: 'tool', name: 'orchestrate' },
          { ...failedCall('read'), parent: 0 },
        ],
      },
    ],
  },
  {
    title: 'an MCP server that is away',
    code: 'mcp_server_unavailable',
    records: [{ outcome: 'degraded', steps: [failedCall('mcp__notes--find', 'unavailable')] }],
  },
  { title: 'an MCP tool that reports an error', code: 'tool_failed', records: [{ outcome: 'degraded', steps: [failedCall('mcp__notes--find')] }] },
  { title: 'a provider that gave no answer in time', code: 'provider_timeout', records: [failed('timeout', 'timeout', attempt('timeout'))] },
  { title: 'a late attempt before one that answered, in a turn that is fine', code: null, records: [{ steps: attempt('timeout') }] },
  {
    title: 'a turn that took too long in its tools',
    code: 'prompt_timeout',
    records: [failed('timeout', 'timeout', [{ kind: 'tool', name: 'read', ms: 60_000 }])],
  },
  {
    title: 'a conversation that does not fit',
    code: 'context_exhausted',
    records: [
      failed('context_exhausted', 'context_exhausted', [
        { kind: 'context', name: 'model context', outcome: 'error', facts: { windowTokens: 4096, inputTokens: 9000, verdict: 'exhausted' } },
      ]),
    ],
  },
  { title: 'a provider that says so', code: 'context_exhausted', records: [failed('context_length', 'context_exhausted', attempt('bad_request'))] },
  { title: 'a turn without an answer', code: 'output_starved', records: [failed('output_starved', 'output_starved')] },
  { title: 'calls that continue in the background', code: 'background_pending', records: [{ endReason: 'background_pending' }] },
  { title: 'a refused key', code: 'provider_credentials_refused', records: [failed('auth', 'error', attempt('auth'))] },
  { title: 'an account without credit', code: 'provider_billing_refused', records: [failed('billing', 'error', attempt('billing'))] },
  { title: 'too many requests', code: 'provider_rate_limited', records: [failed('rate_limit', 'provider_degraded', attempt('rate_limit'))] },
  { title: 'an overloaded provider', code: 'provider_overloaded', records: [failed('overloaded', 'provider_degraded', attempt('overloaded'))] },
  { title: 'a provider that is away', code: 'provider_unreachable', records: [failed('network', 'provider_degraded', attempt('network'))] },
  { title: 'a provider that fails', code: 'provider_failed', records: [failed('server', 'provider_degraded', attempt('server'))] },
  {
    title: 'a request that the provider refuses',
    code: 'provider_rejected_request',
    records: [failed('bad_request', 'error', attempt('bad_request'))],
  },
  { title: 'an answer that was withheld', code: 'content_filtered', records: [failed('content_filter', 'error')] },
  {
    title: 'a model that is paused',
    code: 'model_circuit_open',
    records: [failed('circuit_open', 'circuit_open', [{ kind: 'breaker', name: 'mock/mock-fast', outcome: 'denied', facts: { event: 'refused' } }])],
  },
  { title: 'a budget that is used up', code: 'budget_exceeded', records: [failed('budget_exceeded', 'budget_exceeded')] },
  { title: 'too many steps', code: 'max_steps_reached', records: [failed('max_steps', 'max_steps', times(4, { kind: 'tool', name: 'read' }))] },
  { title: 'an answer that was cut off at its length', code: null, records: [{ endReason: 'max_steps' }] },
  { title: 'the same calls again and again', code: 'context_loop', records: [failed('context_loop', 'context_loop')] },
  { title: 'a caller that left', code: 'turn_aborted', records: [{ outcome: 'cancelled', endReason: 'aborted', error: { kind: 'aborted' } }] },
  {
    title: 'a killed root run',
    code: 'run_killed',
    records: [
      { kind: 'autonomy', outcome: 'ok', endReason: null, facts: { event: 'killed' }, rootRunId: 'root-1' },
      { outcome: 'cancelled', endReason: 'aborted', error: { kind: 'aborted' }, rootRunId: 'root-1' },
    ],
  },
  { title: 'a revoked root run', code: 'authority_revoked', records: [failed('revoked', 'aborted')] },
  {
    title: 'an orphaned run',
    code: 'run_orphaned',
    records: [
      { kind: 'autonomy', endReason: null, facts: { event: 'orphaned' }, rootRunId: 'root-2' },
      { ...failed('unknown', 'error'), rootRunId: 'root-2' },
    ],
  },
  {
    title: 'calls that were denied repeatedly',
    code: 'approvals_denied_repeatedly',
    records: [failed('denial_breaker', 'error', times(3, denied('not_approved')))],
  },
  { title: 'a call with a pending decision', code: 'approval_waiting', records: [{ outcome: 'waiting', refs: { approvalId: 'ap_1' } }] },
  { title: 'a call that was waiting and ran', code: null, records: [{ outcome: 'waiting', refs: { approvalId: 'ap_2' } }, {}] },
  { title: 'a daemon that died', code: 'daemon_interrupted', records: [failed('unknown', 'error')] },
  { title: 'a fault of the gateway', code: 'internal_error', records: [failed('error', 'error')] },
  { title: 'a call that a person denied', code: 'approval_denied', records: [{ outcome: 'degraded', steps: [denied('not_approved')] }] },
  { title: 'a call that policy refused', code: 'tool_denied_by_policy', records: [{ outcome: 'degraded', steps: [denied('policy')] }] },
  { title: 'a call that a rule refused', code: 'tool_denied_by_policy', records: [{ outcome: 'degraded', steps: [denied('refused')] }] },
  { title: 'a tool that took too long', code: 'tool_timeout', records: [{ outcome: 'degraded', steps: [failedCall('web_fetch', 'timeout')] }] },
  {
    title: 'a failed call in a turn that failed for another reason',
    code: 'provider_failed',
    records: [failed('server', 'provider_degraded', [failedCall('read'), ...attempt('server')])],
  },
  {
    title: 'an answer that was not delivered',
    code: 'delivery_failed',
    records: [{ outcome: 'degraded', steps: [{ kind: 'delivery', name: 'gateway', outcome: 'error', error: { kind: 'network', text: canary } }] }],
  },
  {
    title: 'a wake gate that failed',
    code: 'wake_gate_failed_open',
    records: [{}, { kind: 'wake_gate', endReason: null, facts: { wake: true, failedOpen: true }, refs: { jobId: 'cj_1' } }],
  },
  {
    title: 'a wake gate that worked',
    code: null,
    records: [{}, { kind: 'wake_gate', endReason: null, facts: { wake: true, failedOpen: false, toolCalls: 2 } }],
  },
  {
    title: 'a smaller model than configured',
    code: 'served_below_configured',
    records: [{ outcome: 'degraded', facts: { servedBelowConfigured: 'model' } }],
  },
  {
    title: 'a consolidation that a small model declined',
    code: 'synthesis_abstained_low_capability',
    records: [{}, { kind: 'synthesis', outcome: 'skipped', endReason: null, facts: { abstained: 'low_capability' } }],
  },
  { title: 'a consolidation with nothing to do', code: null, records: [{}, { kind: 'synthesis', outcome: 'skipped', endReason: null }] },
  {
    title: 'searches for memories without a result',
    code: 'recall_miss',
    records: [{ steps: [recall({ recalls: 2, zeroHits: 2, finalCount: 0, lanes: 'fts,vector' })] }],
  },
  { title: 'one search without a result, another with', code: null, records: [{ steps: [recall({ recalls: 2, zeroHits: 1, finalCount: 3 })] }] },
  {
    title: 'an outcome that nobody knows',
    code: 'outcome_unresolved',
    records: [{ steps: [{ kind: 'outcome', name: 'turn', facts: { resolved: false } }] }],
  },
  {
    title: 'a known outcome',
    code: null,
    records: [{ steps: [{ kind: 'outcome', name: 'turn', facts: { resolved: true, outcome: 'success', sources: 'feedback' } }] }],
  },
  {
    title: 'a terminal session that was opened and left alone',
    code: 'terminal_drive_opened_without_task',
    records: [{ steps: [terminal('open'), terminal('open', 'term_2'), terminal('type', 'term_2')] }],
  },
  { title: 'a terminal session that the turn used', code: null, records: [{ steps: [terminal('open'), terminal('wait')] }] },
  { title: 'a terminal program that ended at once', code: null, records: [{ steps: [terminal('open', 'term_1', false)] }] },
  {
    title: 'a terminal session that a background task waits for',
    code: null,
    records: [{ steps: [terminal('open'), { kind: 'tool', name: 'terminal', outcome: 'background' }] }],
  },
  {
    title: 'a terminal session that was evicted',
    code: 'terminal_drive_evicted',
    records: [
      { traceId: 'ab'.repeat(16), steps: [terminal('open'), terminal('type')] },
      {
        kind: 'background',
        traceId: 'ab'.repeat(16),
        outcome: 'cancelled',
        endReason: 'evicted',
        refs: { terminalId: 'term_1' },
        facts: { tool: 'terminal', event: 'evicted' },
      },
    ],
  },
  {
    title: 'a turn that met an evicted terminal session',
    code: 'terminal_drive_evicted',
    records: [{ steps: [{ kind: 'tool', name: 'terminal', facts: { action: 'read', terminalId: 'term_1', isOpen: false, isEvicted: true } }] }],
  },
  {
    title: 'a background task that ended for another reason',
    code: null,
    records: [{}, { kind: 'background', outcome: 'cancelled', endReason: 'cancelled', facts: { tool: 'terminal' } }],
  },
  { title: 'a failure before a turn that went well', code: null, records: [failed('auth', 'error', attempt('auth')), {}] },
  { title: 'a turn that went well', code: null, records: [{ steps: [{ kind: 'tool', name: 'read' }] }] },
];
