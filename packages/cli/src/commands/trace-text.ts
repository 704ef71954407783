import type { Result } from '@gatehouse/contract';
import type { Paint } from '../render/paint.ts';
import { plainText, shorten } from '../render/plain.ts';
import { renderColumns } from '../render/table.ts';
import { span } from './runs-text.ts';

type Trace = Result<'obs.trace.get'>;
type Record = Trace['records'][number];
type Step = Record['steps'][number];

const labelLength = 38;
const barLength = 28;

/** One line of the waterfall. */
interface Line {
  readonly label: string;
  /** Milliseconds since the start of the trace. */
  readonly at: number;
  /** Undefined while it runs. */
  readonly ms: number | undefined;
  readonly notes: string;
  readonly color: 'red' | 'yellow' | 'dim' | undefined;
}

/** Draws records as a waterfall: each step on a line, indented below what it is part of, with its bar, duration, tokens, cost and error. */
export function traceText({ records, truncated }: Trace, paint: Paint, width?: number): string {
  const startMs = Math.min(...records.map(({ startedAtMs }) => startedAtMs));
  const lines = records.flatMap((record) => recordLines(record, depthOf(record, records), startMs));
  const wholeMs = Math.max(1, ...lines.map(({ at, ms }) => at + (ms ?? 0)));
  const rows = renderColumns(
    lines.map((line) => [line.label, bar(line, wholeMs), line.ms === undefined ? 'running' : span(Math.round(line.ms)), line.notes]),
  ).split('\n');
  const shown = rows.map((row, at) => {
    const color = lines[at]?.color;
    const text = width === undefined ? row : shorten(row, width);
    return color === undefined ? text : paint(color, text);
  });
  const [first] = records;
  const head = `Trace ${first?.traceId ?? ''}, ${records.length} ${records.length === 1 ? 'record' : 'records'}, ${span(Math.round(wholeMs))}`;
  return [head, '', ...shown, ...(truncated ? ['', 'There are more records than are shown.'] : [])].join('\n');
}

function depthOf(record: Record, records: readonly Record[]): number {
  const parent = records.find(({ id }) => id === record.parentId && id !== record.id);
  if (parent !== undefined)
    return Math.min(
      8,
      depthOf(
        parent,
        records.filter((one) => one !== record),
      ) + 1,
    );
  return record.refs['runId'] === undefined || record === records[0] ? 0 : 1;
}

function recordLines(record: Record, depth: number, startMs: number): Line[] {
  const { kind, id, agentId, outcome, endReason, error, startedAtMs, endedAtMs, steps, droppedSteps } = record;
  const at = startedAtMs - startMs;
  const how =
    outcome === null ? 'running' : endReason === null || endReason === outcome || endReason === 'stop' ? outcome : `${outcome} (${endReason})`;
  const head: Line = {
    label: labelOf(depth, `${kind}${agentId === undefined ? '' : ` of ${agentId}`}`),
    at,
    ms: endedAtMs === null ? undefined : endedAtMs - startedAtMs,
    notes: [how, usageOf(record), errorOf(error), plainText(id)].filter((note) => note !== '').join('  '),
    color: outcome === 'failed' ? 'red' : outcome === 'degraded' || outcome === 'waiting' ? 'yellow' : undefined,
  };
  const visible = steps.filter((step) => !isOnlyAttempt(step, steps));
  const below = visible.map((step) => stepLine(step, depth + 1 + stepDepth(step, steps), at));
  const dropped =
    droppedSteps > 0 ? [{ label: labelOf(depth + 1, `${droppedSteps} more steps`), at, ms: 0, notes: 'not kept', color: 'dim' as const }] : [];
  return [head, ...below, ...dropped];
}

/** The only attempt of a model call adds nothing to the line of the call. */
function isOnlyAttempt({ kind, parent }: Step, steps: readonly Step[]): boolean {
  return kind === 'attempt' && steps.filter((one) => one.kind === 'attempt' && one.parent === parent).length === 1;
}

function stepDepth(step: Step, steps: readonly Step[]): number {
  let depth = 0;
  let current: Step | undefined = step;
  while (current?.parent !== undefined && depth < 8) {
    const { parent }: Step = current;
    current = steps.find(({ id }) => id === parent);
    depth += 1;
  }
  return depth;
}

function stepLine(step: Step, depth: number, recordAt: number): Line {
  const { kind, name, at, ms, outcome, error } = step;
  const cost = step.kind === 'attempt' ? '' : usageOf(step);
  const how = outcome === undefined || outcome === 'ok' ? '' : outcome;
  return {
    label: labelOf(depth, `${kind} ${name}`),
    at: recordAt + at,
    ms,
    notes: [how, cost, errorOf(error ?? null)].filter((note) => note !== '').join('  '),
    color: outcome === 'error' ? 'red' : outcome === 'denied' || outcome === 'waiting' ? 'yellow' : kind === 'attempt' ? 'dim' : undefined,
  };
}

const labelOf = (depth: number, text: string) => `${'  '.repeat(depth)}${shorten(plainText(text), Math.max(8, labelLength - 2 * depth))}`;

function usageOf({ tokens, costNano }: { readonly tokens?: Record['tokens'] | undefined; readonly costNano?: number | null | undefined }): string {
  if (tokens === undefined || tokens.in + tokens.out === 0) return '';
  const cached = tokens.cached === 0 ? '' : ` (${tokens.cached} cached)`;
  const cost = costNano === undefined || costNano === null ? '' : `, $${(costNano / 1e9).toFixed(4)}`;
  return `${tokens.in} in${cached}, ${tokens.out} out${cost}`;
}

function errorOf(error: Record['error']): string {
  if (error === null) return '';
  const status = error.status === undefined ? '' : ` ${error.status}`;
  return `${error.kind}${status}${error.text === undefined ? '' : `: ${error.text}`}`;
}

/** Draws when a step ran within the whole trace; any step is visible. */
function bar({ at, ms }: Pick<Line, 'at' | 'ms'>, wholeMs: number): string {
  const place = (point: number) => Math.min(barLength - 1, Math.max(0, Math.floor((point / wholeMs) * barLength)));
  const from = place(at);
  const to = ms === undefined ? barLength - 1 : Math.max(from, place(at + ms - 1));
  return `${' '.repeat(from)}${'█'.repeat(to - from + 1)}${' '.repeat(barLength - 1 - to)}|`;
}
