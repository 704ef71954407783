import type { RootCauseCode } from '@gatehouse/contract';
import type { Cause } from './rules/case.ts';

interface Advice {
  readonly detail: (cause: Cause) => string;
  /** A command, a setting or a page of the dashboard for each. */
  readonly steps: (cause: Cause) => readonly string[];
}

const model = ({ subject }: Cause) => subject ?? 'the model';
const tool = ({ subject }: Cause) => `"${subject ?? 'a tool'}"`;
/** `provider/modelId` begins with the name of the provider. */
const provider = ({ subject }: Cause) => subject?.split('/')[0] ?? 'PROVIDER';
const below = ({ where }: Cause) => (where === undefined ? '' : ` in ${where}`);
const testProvider = (cause: Cause) => `gatehouse providers test ${provider(cause)}`;
const raiseTurn = 'Raise `agents.<id>.budgets` or `agents.<id>.maxSteps`: gatehouse config set';
const fallbacks = 'Set `agents.<id>.fallbackModels`: gatehouse agents';

const providerAdvice = (what: string, ...more: readonly string[]): Advice => ({
  detail: (cause) => `${model(cause)}${below(cause)}: ${what}.`,
  steps: (cause) => [testProvider(cause), ...more],
});

export const advice: Readonly<Record<RootCauseCode, Advice>> = {
  session_not_found: {
    detail: ({ subject }) => `Nothing is stored under the given ${subject ?? 'reference'}.`,
    steps: () => ['gatehouse sessions list', 'Pass includeSynthetic for evaluations and replays'],
  },
  content_heuristic_misclassification: {
    detail: (cause) => `Successful results of ${tool(cause)} were counted as failures.`,
    steps: () => ['gatehouse trace REF'],
  },
  breaker_opened_repeated_failure: {
    detail: (cause) => `${tool(cause)} failed repeatedly${cause.count === undefined || cause.count === 0 ? '' : ` (${cause.count} times)`}.`,
    steps: (cause) =>
      cause.subject?.includes('/') === true
        ? [testProvider(cause), fallbacks]
        : ['gatehouse trace REF shows each call and its error', 'gatehouse tools'],
  },
  context_bloat: {
    detail: ({ count = 0 }) => `${count} results were too long for the context and were written to files.`,
    steps: () => ['Ask for narrower results (limit, offset, filters)', 'gatehouse context SESSION'],
  },
  exec_dependency: {
    detail: (cause) => `A call of ${tool(cause)} needed a program or module that is not installed.`,
    steps: () => ['Install it on the machine or in the workspace', 'gatehouse doctor'],
  },
  orchestrate_failed: {
    detail: ({ subject = 'unknown' }) => `A script of "orchestrate" failed: ${subject}.`,
    steps: () => ['gatehouse trace REF shows the calls of the script', 'gatehouse runs'],
  },
  mcp_server_unavailable: {
    detail: ({ subject = 'unknown' }) => `The MCP server "${subject}" could not be reached.`,
    steps: ({ subject = 'SERVER' }) => [`gatehouse mcp test ${subject}`, `gatehouse mcp reconnect ${subject}`],
  },
  provider_timeout: {
    detail: (cause) => `${model(cause)} did not answer in time.`,
    steps: (cause) => [testProvider(cause), 'Raise `agents.<id>.modelTimeoutMs`', fallbacks],
  },
  run_killed: { detail: ({ subject = 'The run' }) => `${subject} was killed.`, steps: () => ['gatehouse audit --action run.kill'] },
  authority_revoked: {
    detail: ({ subject = 'of the turn' }) => `The authority of the root run (${subject}) was revoked.`,
    steps: () => ['gatehouse audit --class security', 'gatehouse tokens list'],
  },
  run_orphaned: {
    detail: ({ subject = 'The run' }) => `${subject} was not continued after its daemon died.`,
    steps: () => ['gatehouse runs', 'gatehouse logs'],
  },
  approvals_denied_repeatedly: {
    detail: () => 'The calls of the turn were denied repeatedly, so it was stopped.',
    steps: () => ['gatehouse approvals', 'Allow the tool in `approvals.rules`, or remove it from the agent'],
  },
  approval_waiting: {
    detail: ({ subject = '' }) => `A call waits for a decision${subject === '' ? '' : ` (${subject})`}.`,
    steps: () => ['gatehouse approvals', 'Dashboard: Approvals'],
  },
  prompt_timeout: {
    detail: (cause) => `The turn${below(cause)} did not end within its wall clock.`,
    steps: () => ['Raise `agents.<id>.turnTimeoutMs`', 'gatehouse trace REF shows which step took the time'],
  },
  context_exhausted: {
    detail: (cause) => `The conversation${below(cause)} does not fit into the context window of the model.`,
    steps: ({ subject = 'SESSION' }) => [`gatehouse sessions compact ${subject}`, 'Choose a model with a larger window: gatehouse models'],
  },
  output_starved: {
    detail: (cause) => `${model(cause)}${below(cause)} ended its turn without an answer.`,
    steps: () => ['Raise the output cap of the model (`maxTokens`)', 'gatehouse trace REF'],
  },
  background_pending: {
    detail: () => 'Calls of the turn continue in the background.',
    steps: () => ['gatehouse call background.list'],
  },
  provider_credentials_refused: providerAdvice('the provider refused the key', 'gatehouse secrets', 'Dashboard: Models'),
  provider_billing_refused: providerAdvice('the account does not allow the call', 'Check credit and limits at the provider'),
  provider_rate_limited: providerAdvice('the provider accepts no more requests for now', 'Add a key or raise the limit at the provider', fallbacks),
  provider_overloaded: providerAdvice('the provider is overloaded', fallbacks),
  provider_unreachable: providerAdvice('the provider could not be reached', 'gatehouse doctor'),
  provider_failed: providerAdvice('the provider failed', fallbacks),
  provider_rejected_request: providerAdvice('the provider refused the request itself', "gatehouse trace REF shows the provider's sentence"),
  content_filtered: providerAdvice("the provider's content filter withheld the answer", 'gatehouse trace REF'),
  model_circuit_open: {
    detail: (cause) => `${model(cause)} failed repeatedly before${below(cause)} and is paused for a while.`,
    steps: (cause) => [testProvider(cause), `gatehouse providers retry ${provider(cause)}`, fallbacks],
  },
  budget_exceeded: {
    detail: (cause) => `A budget did not allow the model call${below(cause)}.`,
    steps: () => ['gatehouse usage --by agent', 'Raise `budgets`: gatehouse config set'],
  },
  max_steps_reached: { detail: (cause) => `The turn${below(cause)} used all its permitted steps.`, steps: () => [raiseTurn, 'gatehouse trace REF'] },
  context_loop: {
    detail: (cause) => `${model(cause)}${below(cause)} repeated the same tool calls.`,
    steps: () => ['gatehouse trace REF shows the calls', 'Choose a more capable model: gatehouse models'],
  },
  turn_aborted: { detail: () => 'The caller left, or the turn was stopped.', steps: () => ['gatehouse audit', 'gatehouse trace REF'] },
  daemon_interrupted: {
    detail: (cause) => `The daemon died during the turn${below(cause)}; what its last step did is unknown.`,
    steps: () => ['gatehouse logs', 'Check the effects of the last step, then send the message again'],
  },
  internal_error: { detail: (cause) => `The gateway failed${below(cause)}.`, steps: () => ['gatehouse logs --level error', 'gatehouse doctor'] },
  sub_agent_failed: {
    detail: ({ subject = '', where = 'failed' }) => `The sub-agent ${subject} failed: ${where}.`,
    steps: ({ subject = 'RUN' }) => [`gatehouse runs show ${subject}`],
  },
  graph_node_failed: {
    detail: ({ subject = '' }) => `A node of a graph failed: ${subject}.`,
    steps: ({ subject = 'GRAPH' }) => [`gatehouse graph status ${subject.split(' ')[0] ?? ''}`],
  },
  approval_denied: { detail: (cause) => `A person denied a call of ${tool(cause)}.`, steps: () => ['gatehouse audit --action approval.resolve'] },
  approval_expired: {
    detail: (cause) => `Nobody decided about a call of ${tool(cause)} in time.`,
    steps: () => ['gatehouse approvals', 'Raise `approvals.timeoutMs` or `approvals.unattendedTimeoutMs`'],
  },
  tool_denied_by_policy: {
    detail: (cause) => `Policy refused a call of ${tool(cause)}.`,
    steps: () => ['gatehouse tools', 'Allow it in `agents.<id>.tools` or `approvals.rules`'],
  },
  tool_timeout: { detail: (cause) => `${tool(cause)} did not return in time.`, steps: () => ['gatehouse trace REF'] },
  tool_failed: { detail: (cause) => `${tool(cause)} failed: ${cause.where ?? 'unknown'}.`, steps: () => ['gatehouse trace REF shows its error'] },
  delivery_failed: {
    detail: ({ subject = '', where }) => `A delivery failed: ${subject}${where === undefined ? '' : ` (${where})`}.`,
    steps: ({ subject = '' }) =>
      subject.startsWith('ob_')
        ? ['gatehouse channels deliveries', `gatehouse channels resend ${subject}`]
        : ['gatehouse webhooks deliveries', 'gatehouse inbox'],
  },
  delivery_waiting: {
    detail: ({ subject = '', count = 1 }) => `${count} ${count === 1 ? 'part' : 'parts'} of the answer wait to be sent by the channel ${subject}.`,
    steps: ({ subject = '' }) => ['gatehouse channels list', `gatehouse channels deliveries ${subject} --state pending`],
  },
  wake_gate_failed_open: {
    detail: ({ subject = 'a job' }) => `The wake gate of ${subject} failed, so the job ran without it.`,
    steps: () => ['gatehouse cron list', 'Correct the script of the wake gate'],
  },
  served_below_configured: {
    detail: (cause) => `${model(cause)} served the turn with less than configured: ${cause.where ?? 'model'}.`,
    steps: () => ['gatehouse providers list', 'gatehouse models'],
  },
  terminal_drive_opened_without_task: {
    detail: ({ subject = 'A session' }) =>
      `${subject}: the terminal session was opened and left open, without any input and without a background task.`,
    steps: ({ subject = 'ID' }) => ['gatehouse runs background', `gatehouse runs stop ${subject}`],
  },
  terminal_drive_evicted: {
    detail: ({ subject = 'A session' }) => `${subject}: the terminal session was ended, because nobody had used it for a while.`,
    steps: () => ['Raise `exec.terminalIdleMs`'],
  },
  learned_skill_failing: {
    detail: ({ subject = '', count = 1 }) => `The skill "${subject}" was used; its last ${count} turns failed.`,
    steps: ({ subject = 'NAME' }) => [`gatehouse skills show ${subject}`],
  },
  synthesis_abstained_low_capability: {
    detail: (cause) => `${model(cause)} is too small to consolidate memories, so none were.`,
    steps: () => ['Set a larger model for memory work: `agents.<id>.operationModels`', 'gatehouse models'],
  },
  recall_miss: {
    detail: ({ count = 1 }) => `${count} ${count === 1 ? 'search' : 'searches'} for memories found nothing.`,
    steps: () => ['gatehouse memory search TERMS'],
  },
  outcome_unresolved: {
    detail: () => 'Nothing shows whether the turn did what was asked.',
    steps: () => ['gatehouse trace REF', 'Mark the answer as good or bad in the chat'],
  },
};
