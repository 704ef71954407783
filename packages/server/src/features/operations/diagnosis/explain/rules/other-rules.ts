import { countFact, textFact } from '../../records.ts';
import type { Case, CaseStep, Match, Rule } from './case.ts';
import { kindOf } from './tool-rules.ts';

function subAgentFailed({ rows }: Case): Match | undefined {
  const run = rows.runs.find(({ state, endReason }) => state === 'failed' && endReason !== 'killed');
  return run && { subject: run.id, where: run.errorKind ?? run.endReason ?? undefined };
}

function nodeFailed({ rows }: Case): Match | undefined {
  const [node] = rows.failedNodes;
  return node && { subject: `${node.graphId} ${node.nodeId}` };
}

const isDenied = ({ step }: CaseStep) => step.outcome === 'denied';

/** Calls that needed a decision and did not get it; every other denial is one of policy or rules. */
const isUnapproved = (call: CaseStep) => isDenied(call) && kindOf(call.step) === 'not_approved';

function undecided(state: 'denied' | 'expired') {
  return ({ tools, rows, focus }: Case): Match | undefined => {
    const row = rows.approvals.find((one) => one.state === state && one.traceId === focus?.traceId);
    if (row !== undefined) return { subject: row.tool, where: row.id };
    // The rows of approvals are pruned before the traces.
    const call = state === 'denied' && !rows.approvals.some(({ traceId }) => traceId === focus?.traceId) ? tools.find(isUnapproved) : undefined;
    return call && { subject: call.step.name };
  };
}

function deniedByPolicy({ tools }: Case): Match | undefined {
  const call = tools.find((one) => isDenied(one) && !isUnapproved(one));
  return call && { subject: call.step.name };
}

const isTimeout = (step: CaseStep['step']) => kindOf(step) === 'timeout';

function toolTimeout({ tools, isFine }: Case): Match | undefined {
  const late = isFine ? undefined : tools.findLast(({ step }) => step.outcome === 'error' && isTimeout(step));
  return late && { subject: late.step.name };
}

function toolFailed({ tools, isFine }: Case): Match | undefined {
  const failed = isFine ? undefined : tools.findLast(({ step }) => step.outcome === 'error');
  return failed && { subject: failed.step.name, where: kindOf(failed.step) };
}

const undelivered: ReadonlySet<string> = new Set(['rejected', 'expired', 'unknown']);
const waiting: ReadonlySet<string> = new Set(['pending', 'sending', 'held']);

function deliveryFailed({ steps, records, rows }: Case): Match | undefined {
  const step = steps.findLast((one) => one.step.kind === 'delivery' && one.step.outcome === 'error');
  if (step !== undefined) return { subject: step.step.name };
  // A person may have sent it again, or settled it, since then.
  const row = rows.deliveries.find(({ state }) => undelivered.has(state));
  if (row !== undefined) return { subject: row.id, where: row.state };
  const known = new Set<string | undefined>(rows.deliveries.map(({ id }) => id));
  const record = records.findLast(({ kind, outcome, refs }) => kind === 'delivery' && outcome === 'failed' && !known.has(refs['deliveryId']));
  return record && { subject: record.refs['deliveryId'] ?? record.id, where: record.endReason ?? undefined };
}

function deliveryWaiting({ rows }: Case): Match | undefined {
  const open = rows.deliveries.filter(({ state }) => waiting.has(state));
  const [first] = open;
  return first && { subject: first.instance, count: open.length };
}

function gateFailedOpen({ records }: Case): Match | undefined {
  const gate = records.findLast(({ kind, facts }) => kind === 'wake_gate' && facts['failedOpen'] === true);
  return gate && { subject: gate.refs['jobId'] };
}

function servedBelow({ focus }: Case): Match | undefined {
  const what = textFact(focus?.facts['servedBelowConfigured']);
  return what === undefined ? undefined : { subject: focus?.model ?? undefined, where: what };
}

const isTerminal = ({ step }: CaseStep) => step.name === 'terminal';

/** A session that the turn opened and left alone: it waits for nothing, and nobody is notified of its end. */
function openedWithoutTask({ tools, focus }: Case): Match | undefined {
  const own = tools.filter((call) => isTerminal(call) && call.record.traceId === focus?.traceId);
  if (own.some(({ step }) => step.outcome === 'background')) return undefined;
  const sessionOf = ({ step }: CaseStep) => textFact(step.facts?.['terminalId']);
  const left = own.find(
    (call) =>
      call.step.facts?.['action'] === 'open' &&
      call.step.facts['isOpen'] === true &&
      own.filter((one) => sessionOf(one) === sessionOf(call)).length === 1,
  );
  return left && { subject: sessionOf(left) };
}

function evicted({ tools, records }: Case): Match | undefined {
  const record = records.findLast(({ kind, facts }) => kind === 'background' && facts['tool'] === 'terminal' && facts['event'] === 'evicted');
  const subject =
    record?.refs['terminalId'] ??
    textFact(tools.findLast((call) => isTerminal(call) && call.step.facts?.['isEvicted'] === true)?.step.facts?.['terminalId']);
  return subject === undefined ? undefined : { subject };
}

function skillFailing({ steps, rows, focus }: Case): Match | undefined {
  const used = new Set(steps.flatMap(({ step }) => (step.kind === 'skill' && step.facts?.['used'] !== false ? [step.name] : [])));
  const failing = rows.failingSkills.find(({ name }) => used.has(name));
  if (failing !== undefined) return { subject: failing.name, count: failing.failures };
  const judged = steps.some(({ step }) => step.kind === 'outcome' && ['failure', 'failed', 'error'].includes(String(step.facts?.['outcome'])));
  const [name] = used;
  return judged && focus?.outcome === 'failed' && name !== undefined ? { subject: name, count: 1 } : undefined;
}

function abstained({ records }: Case): Match | undefined {
  const record = records.find(({ kind, facts }) => kind === 'synthesis' && facts['abstained'] === 'low_capability');
  return record && { subject: record.model ?? textFact(record.facts['model']) };
}

/** Every search of the turn found nothing, although the agent has memories. */
function recallMiss({ steps, rows, focus }: Case): Match | undefined {
  const recalls = steps.filter(({ step, record }) => step.kind === 'recall' && record.traceId === focus?.traceId);
  const searches = recalls.reduce((sum, { step }) => sum + countFact(step.facts?.['recalls']), 0);
  const empty = recalls.reduce((sum, { step }) => sum + countFact(step.facts?.['zeroHits']), 0);
  return searches > 0 && empty >= searches && rows.hasMemories ? { count: searches } : undefined;
}

function unresolved({ steps, focus }: Case): Match | undefined {
  const judged = steps.findLast(({ step, record }) => step.kind === 'outcome' && record.traceId === focus?.traceId);
  return judged?.step.facts?.['resolved'] === false ? {} : undefined;
}

/** What went wrong below the turn or after it, and what is merely worth knowing. */
export const otherRules: readonly Rule[] = [
  { code: 'sub_agent_failed', find: subAgentFailed },
  { code: 'graph_node_failed', find: nodeFailed },
  { code: 'approval_denied', find: undecided('denied') },
  { code: 'approval_expired', find: undecided('expired') },
  { code: 'tool_denied_by_policy', find: deniedByPolicy },
  { code: 'tool_timeout', find: toolTimeout },
  { code: 'tool_failed', find: toolFailed },
  { code: 'delivery_failed', find: deliveryFailed },
  { code: 'delivery_waiting', find: deliveryWaiting },
  { code: 'wake_gate_failed_open', find: gateFailedOpen },
  { code: 'served_below_configured', find: servedBelow },
  { code: 'terminal_drive_evicted', find: evicted },
  { code: 'terminal_drive_opened_without_task', find: openedWithoutTask },
  { code: 'learned_skill_failing', find: skillFailing },
  { code: 'synthesis_abstained_low_capability', find: abstained },
  { code: 'recall_miss', find: recallMiss },
  { code: 'outcome_unresolved', find: unresolved },
];
