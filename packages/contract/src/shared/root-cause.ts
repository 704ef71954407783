import * as z from 'zod';
import { once } from '../once.ts';

/**
 * Root causes of `obs.explain`, each with its meaning. The order is that of the rules: the first that applies wins, so what a tool did comes
 * before how the turn ended, and what is merely worth knowing comes last.
 */
export const rootCauses = {
  session_not_found: 'Nothing is stored under the reference.',
  content_heuristic_misclassification: 'A successful result was counted as a failure because of its text.',
  breaker_opened_repeated_failure: 'A circuit breaker opened, or one tool failed five times or more.',
  context_bloat: 'Three or more results had to be written to files, one of at least 32,000 characters.',
  exec_dependency: 'A command needed a program or module that is not installed.',
  orchestrate_failed: 'A script of the tool `orchestrate` failed.',
  mcp_server_unavailable: 'A tool failed because its MCP server could not be reached.',
  provider_timeout: 'The model provider did not answer in time.',
  run_killed: 'Somebody stopped the root run.',
  authority_revoked: 'The token, the lease or the root run was revoked.',
  run_orphaned: 'The daemon that ran the work died, and no other one continued it.',
  approvals_denied_repeatedly: 'The turn was stopped because its calls were denied repeatedly.',
  approval_waiting: 'A call waits for the decision of a person.',
  prompt_timeout: 'The turn did not end within its wall clock.',
  context_exhausted: 'The conversation does not fit into the context window of the model.',
  output_starved: 'The model ended its turn without an answer.',
  background_pending: 'The turn ended while calls that it started were still running.',
  provider_credentials_refused: 'The model provider refused the key.',
  provider_billing_refused: 'The account at the model provider does not allow the call.',
  provider_rate_limited: 'The model provider accepts no more requests for now.',
  provider_overloaded: 'The model provider is overloaded.',
  provider_unreachable: 'The model provider could not be reached, or the connection broke.',
  provider_failed: 'The model provider failed, or sent an answer that could not be used.',
  provider_rejected_request: 'The model provider refused this request itself.',
  content_filtered: "The provider's content filter withheld the answer.",
  model_circuit_open: 'The model failed repeatedly before and is paused for a while.',
  budget_exceeded: 'A budget did not allow the model call.',
  max_steps_reached: 'The turn used all its permitted steps.',
  context_loop: 'The model repeated the same tool calls without getting further.',
  turn_aborted: 'The caller left, or the turn was stopped.',
  daemon_interrupted: 'The daemon died during the turn, and what it did last is unknown.',
  internal_error: 'The gateway itself failed.',
  sub_agent_failed: 'A sub-agent failed.',
  graph_node_failed: 'A node of a graph failed.',
  approval_denied: 'A person denied a call.',
  approval_expired: 'Nobody decided about a call in time.',
  tool_denied_by_policy: 'Policy refused a tool call.',
  tool_timeout: 'A tool did not return in time.',
  tool_failed: 'A tool failed.',
  delivery_failed: 'The answer did not reach its reader, or it is unknown whether it did.',
  delivery_waiting: 'The answer is stored, and waits to be sent to its chat.',
  wake_gate_failed_open: 'The script of a wake gate failed, so the job ran without it.',
  served_below_configured: 'A smaller model, context window or output cap than configured served the turn.',
  terminal_drive_evicted: 'A terminal session was ended, because nobody had used it for a while.',
  terminal_drive_opened_without_task: 'A terminal session was left open that nothing was typed into, and that no background task waits for.',
  learned_skill_failing: 'A skill whose turns keep failing was used.',
  synthesis_abstained_low_capability: 'Memories were not consolidated, because the model is too small.',
  recall_miss: 'The search for memories found nothing.',
  outcome_unresolved: 'Whether the turn did what was asked is unknown.',
} as const satisfies Record<string, string>;
export type RootCauseCode = keyof typeof rootCauses;

/** Codes that no rule returns, with the reason. */
export const unusedRootCauses = {
  content_heuristic_misclassification: 'Results count as failed by what the tool reports, never by their text.',
} as const satisfies { readonly [Code in RootCauseCode]?: string };

/** Findings of `obs.system.health`, each with its threshold. */
export const healthFindings = {
  system_autonomy_degradation: 'At least one root run was orphaned or stopped for repeated denials, and at least 25 % of the root runs failed.',
  system_high_degraded_rate: 'At least 10 sessions, and at least 30 % of them degraded.',
  system_acute_degradation: 'At least 3 sessions of the last hour degraded, and at least 50 % of them.',
  'config_posture:served_below_configured': 'At least one turn was served by a smaller model, context window or output cap than configured.',
  provider_refused: 'At least one turn failed because a provider refused the key or the account.',
  budget_exhausted: 'At least 3 turns were refused by a budget.',
  breaker_trips: 'Circuit breakers opened at least 3 times.',
  recurring_error: 'One kind of error ended at least 5 turns.',
  tool_failing: 'One tool failed at least 5 times, and in at least 50 % of its calls.',
  durable_orphaned: 'At least one root run was orphaned: its daemon died and no other one continued it.',
  autonomy_revoked: 'At least one root run was revoked.',
  autonomy_killed: 'At least one root run was killed.',
  autonomy_denial_breaker: 'At least one turn was stopped because its calls were denied repeatedly.',
  autonomy_budget_breach: 'At least one root run reached its budget.',
  channel_down: 'At least one enabled channel is refused by its platform, is not connected for 5 minutes, or failed 5 consecutive times.',
  channel_inbound_silent: 'At least one connected channel took in 20 messages or more in a week, and none in the 3 days after it.',
  channel_breaker_open: 'At least one channel pauses sending, because 5 consecutive sends failed.',
  delivery_dead_letters: 'At least one message to a chat was rejected or expired.',
  delivery_unknown: 'Of at least one message to a chat nobody knows whether it arrived; it waits for a decision.',
  delivery_waiting: 'At least one message to a chat waits for 10 minutes or longer.',
  orchestrate_efficiency: 'At least 5 scripts ended, and at least 50 % of them failed.',
  cron_wake_gate_efficiency: 'At least 20 wake gates ran, and fewer than 5 % of them saved a turn, or at least 20 % failed.',
  pipeline_authoring:
    'Small models write graphs that are valid at least 15 percentage points less often than those of frontier models (20 or more in the window).',
  voice_health: 'At least 3 requests to speak a text or to convert a recording failed, and at least 50 % of them.',
} as const satisfies Record<string, string>;
export type HealthFindingCode = keyof typeof healthFindings;

export const RootCause = once(() =>
  z
    .strictObject({
      code: z.enum(Object.keys(rootCauses) as [RootCauseCode, ...RootCauseCode[]]),
      detail: z.string().describe('What happened here, without content.'),
      suggestedNextSteps: z.array(z.string()).describe('A command, a setting or a page for each.'),
    })
    .meta({ id: 'RootCause' }),
);

export const HealthFindingName = once(() => z.enum(Object.keys(healthFindings) as [HealthFindingCode, ...HealthFindingCode[]]));
