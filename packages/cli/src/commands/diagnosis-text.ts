import type { Result } from '@gatehouse/contract';
import type { Paint } from '../render/paint.ts';
import { plainText } from '../render/plain.ts';
import { renderColumns, renderTable } from '../render/table.ts';
import { span } from './runs-text.ts';

type Report = Result<'obs.explain'>;
type Health = Result<'obs.system.health'>;

const colors = { ok: 'green', degraded: 'yellow', failed: 'red' } as const;
const shownFailures = 10;

/** Renders the report of a session; `reference` is what the user typed. */
export function explainText(report: Report, reference: string, paint: Paint): string {
  const { likelyRootCause: cause, outcome, failures, truncations } = report;
  const facts = renderColumns([
    ['session', report.sessionKey ?? report.conversationRef ?? reference],
    ['trace', report.traceId],
    ['agent', report.agentId],
    ['took', span(report.timing.durationMs)],
    ['turns', report.timing.turnCount],
    ['tokens', report.cost.totalTokens],
    ['cost', report.cost.costUsd === null ? undefined : `$${report.cost.costUsd.toFixed(4)}`],
  ]);
  const severity = outcome === null ? '' : `${paint(colors[outcome.severity], outcome.severity)}  `;
  return [
    `${severity}${plainText(report.summary)}`,
    '',
    ...(cause === null ? [] : [`${paint('yellow', cause.code)}: ${plainText(cause.detail)}`, ...stepLines(cause.suggestedNextSteps, reference), '']),
    facts,
    ...toolLines(report),
    ...(failures.length === 0 ? [] : ['', failureTable(failures.slice(0, shownFailures))]),
    ...(truncations.length === 0
      ? []
      : ['', paint('dim', `Left out: ${truncations.map(({ field }) => plainText(field)).join(', ')}. --json and --full have more.`)]),
  ].join('\n');
}

/** The server does not know how the user named it. */
const stepLines = (steps: readonly string[], reference: string) => steps.map((step) => `  ${plainText(step.replaceAll(/\bREF\b/gu, reference))}`);

function toolLines({ toolStats }: Report): string[] {
  const rows = Object.entries(toolStats).map(([name, { ok, failed, topErrorKind }]) => [name, ok, failed, topErrorKind]);
  return rows.length === 0 ? [] : ['', renderTable(['Tool', 'Ok', 'Failed', 'Mostly'], rows)];
}

function failureTable(failures: Report['failures']): string {
  return renderTable(
    ['Failed', 'Error', 'Status', 'Judged by', 'Record'],
    failures.map(({ toolName, errorKind, httpStatus, classifiedFailureBy, recordId }) => [
      toolName,
      errorKind,
      httpStatus,
      classifiedFailureBy,
      recordId,
    ]),
  );
}

/** Renders the state of the whole system. */
export function healthText(report: Health, paint: Paint): string {
  const { sessions, findings, activity, cost, topErrorKinds } = report;
  const percent = Math.round(sessions.degradedRate * 100);
  const head = `Last ${report.windowHours} h: ${sessions.total} sessions, ${sessions.degraded} degraded (${percent} %), ${activity.turnTotal} turns, ${activity.tokenTotal} tokens${cost.costUsd === null ? '' : `, $${cost.costUsd.toFixed(4)}`}.`;
  const causes = Object.entries(report.degradedByCause).map(([reason, count]) => `${plainText(reason)} ${count}`);
  const failing = Object.entries(report.toolStats).filter(([, { failed }]) => failed > 0);
  return [
    head,
    ...(causes.length === 0 ? [] : [`Degraded by: ${causes.join(', ')}.`]),
    ...(topErrorKinds.length === 0 ? [] : [`Errors: ${topErrorKinds.map(({ kind, count }) => `${plainText(kind)} ${count}`).join(', ')}.`]),
    '',
    ...(findings.length === 0
      ? [paint('green', 'No findings.')]
      : findings.flatMap(({ code, detail, hint }, at) => [
          `${paint(at === 0 ? 'red' : 'yellow', code)}: ${plainText(detail)}`,
          `  ${plainText(hint)}`,
        ])),
    ...(failing.length === 0
      ? []
      : [
          '',
          renderTable(
            ['Tool', 'Ok', 'Failed'],
            failing.map(([name, { ok, failed }]) => [name, ok, failed]),
          ),
        ]),
  ].join('\n');
}
