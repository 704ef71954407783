import type { Result } from '@gatehouse/contract';
import { causeNote, type Waiting, withNotes, withRefusals } from '../render/notes.ts';
import { plainText, shorten } from '../render/plain.ts';
import { type Cell, renderBytes, renderColumns, renderDuration, renderTable, renderTime } from '../render/table.ts';

export type RootRun = Result<'run.list'>['runs'][number];
export type SubAgent = Result<'subagent.list'>['runs'][number];
export type Waited = Result<'subagent.wait'>['results'][number];

const taskLength = 50;

/** Lists root runs with their sub-agents; sub-agents of other roots come last. Shortens causes to `width`. */
export function runTree(roots: readonly RootRun[], runs: readonly SubAgent[], nowMs: number, width?: number): string {
  if (roots.length === 0 && runs.length === 0) return 'No runs.';
  const rows: { readonly cells: Cell[]; readonly note: string | undefined }[] = [];
  const addRuns = (some: readonly SubAgent[]) => {
    for (const { prefix, run } of branches(some)) rows.push({ cells: runCells(prefix, run, nowMs), note: runNote(run) });
  };
  const known = new Set(roots.map(({ rootRunId }) => rootRunId));
  for (const root of roots) {
    const own = runs.filter(({ rootRunId }) => rootRunId === root.rootRunId);
    // The run below shows the same cause.
    const isSaid = own.some((run) => runNote(run) !== undefined);
    rows.push({ cells: rootCells(root, nowMs), note: isSaid ? undefined : causeNote(root) });
    addRuns(own);
  }
  addRuns(runs.filter(({ rootRunId }) => rootRunId === undefined || !known.has(rootRunId)));
  const table = renderTable(
    ['What', 'State', 'Agent', 'Took', 'Tokens', 'Cost', 'Id'],
    rows.map(({ cells }) => cells),
  );
  return withNotes(
    table,
    rows.map(({ note }) => note),
    width,
  );
}

const runNote = ({ completion }: SubAgent): string | undefined => causeNote({ cause: causeIn(completion) });

/** Returns why a run failed, which only admins see. */
function causeIn(completion: Waited['completion'] | SubAgent['completion']): string | undefined {
  return completion !== undefined && 'cause' in completion ? completion.cause : undefined;
}

function rootCells(root: RootRun, nowMs: number): Cell[] {
  const { open, completed, failed } = root.runs;
  const counts = [
    ...(open > 0 ? [`${open} open`] : []),
    ...(completed > 0 ? [`${completed} completed`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(root.graphs > 0 ? [`${root.graphs} graphs`] : []),
  ];
  return [
    counts.length === 0 ? 'root run' : counts.join(', '),
    root.evicted ? `${root.state}, evicted` : root.state,
    root.agentId,
    span((root.endedAt ?? nowMs) - root.startedAt),
    root.tokens,
    costText(root.cost),
    root.rootRunId,
  ];
}

function runCells(prefix: string, run: SubAgent, nowMs: number): Cell[] {
  const telemetry = 'telemetry' in run ? run.telemetry : undefined;
  const place = run.nodeId === undefined ? '' : `node ${run.nodeId}: `;
  return [
    `${prefix}${'task' in run ? shorten(`${place}${run.task}`, taskLength) : place.slice(0, -2)}`,
    stateText(run),
    run.agentId,
    span((run.completion?.completedAtMs ?? nowMs) - run.startedAt),
    telemetry?.tokensUsedTotal,
    telemetry === undefined ? undefined : costText(telemetry.costTotal),
    run.runId,
  ];
}

function stateText({ status, completion }: SubAgent): string {
  const { endReason, errorKind } = completion ?? {};
  if (status !== 'failed') return withRefusals(status, completion?.effectsRefused);
  return endReason === 'failed' || endReason === undefined
    ? `failed${errorKind === undefined ? '' : `: ${errorKind}`}`
    : endReason.replaceAll('_', ' ');
}

/** Returns each run with its tree lines; a run whose parent is missing is at the top level. */
function branches(runs: readonly SubAgent[]): { readonly prefix: string; readonly run: SubAgent }[] {
  const ids = new Set(runs.map(({ runId }) => runId));
  const parentOf = (run: SubAgent): string | undefined =>
    'task' in run && run.parentRunId !== undefined && ids.has(run.parentRunId) ? run.parentRunId : undefined;
  const found: { prefix: string; run: SubAgent }[] = [];
  const walk = (parent: string | undefined, indent: string): void => {
    const children = runs.filter((run) => parentOf(run) === parent).toSorted((a, b) => a.startedAt - b.startedAt || (a.runId < b.runId ? -1 : 1));
    for (const [at, run] of children.entries()) {
      const isLast = at === children.length - 1;
      found.push({ prefix: `${indent}${isLast ? '└─ ' : '├─ '}`, run });
      walk(run.runId, `${indent}${isLast ? '   ' : '│  '}`);
    }
  };
  walk(undefined, '');
  return found;
}

/** Formats all details of a run. */
export function runText(run: SubAgent | undefined, waited: Waited | undefined, nowMs: number, waiting?: Waiting): string {
  const completion = waited?.completion ?? run?.completion;
  const record = run !== undefined && 'task' in run ? run : undefined;
  const telemetry = record?.telemetry;
  const cause = causeIn(completion);
  const facts: (readonly Cell[])[] = [
    ['run', run?.runId ?? waited?.runId],
    ...(run === undefined
      ? []
      : [
          ['agent', run.agentId],
          ['state', stateText(run)],
          ['took', span((completion?.completedAtMs ?? nowMs) - run.startedAt)],
          ...(waiting === undefined ? [] : [['waiting', causeNote({ waiting })]]),
          ['root', run.rootRunId],
          ['depth', run.depth],
        ]),
    ...(run?.graphId === undefined ? [] : [['graph', `${run.graphId}, node ${run.nodeId ?? '-'}`]]),
    ...(record === undefined ? [] : [['conversation', record.conversationRef]]),
    ...(telemetry === undefined
      ? []
      : [
          ['tokens', telemetry.tokensUsedTotal],
          ['cost', costText(telemetry.costTotal)],
          ['steps', `${telemetry.stepsExecuted}, finished: ${telemetry.finishReason}`],
        ]),
    ...(completion === undefined ? [] : [['ended', `${completion.endReason}, ${renderTime(completion.completedAtMs)}`]]),
    ...(completion?.errorKind === undefined ? [] : [['error', completion.errorKind]]),
    ...(cause === undefined ? [] : [['cause', cause]]),
  ];
  return [renderColumns(facts), ...(record === undefined ? [] : ['', 'Task:', ...indented(record.task)]), ...resultLines(completion)].join('\n');
}

/** Formats how each run ended, and its answer. */
export function waitedText(results: readonly Waited[]): string {
  return results
    .map(({ runId, status, completion }) =>
      [
        `${plainText(runId)}  ${completion === undefined ? status.replaceAll('_', ' ') : completion.endReason.replaceAll('_', ' ')}`,
        ...(completion?.cause === undefined ? [] : [`  cause: ${plainText(completion.cause)}`]),
        ...resultLines(completion),
      ].join('\n'),
    )
    .join('\n\n');
}

function resultLines(completion: Waited['completion'] | SubAgent['completion']): string[] {
  if (completion === undefined || !('summary' in completion || 'resultRef' in completion)) return [];
  const { summary, resultRef } = completion;
  return [
    ...(summary === undefined ? [] : ['', ...indented(summary)]),
    ...(resultRef === undefined
      ? []
      : [
          '',
          `Full result: ${resultRef.kind}, ${renderBytes(resultRef.bytes)}, until ${renderTime(resultRef.expiresAt)}: gatehouse media download ${plainText(resultRef.ref.slice(resultRef.ref.lastIndexOf('/') + 1))}`,
        ]),
  ];
}

function indented(text: string): string[] {
  return text.split('\n').map((line) => `  ${plainText(line)}`);
}

export function span(ms: number): string {
  return ms < 1000 ? `${Math.max(0, ms)} ms` : renderDuration(ms);
}

export function costText(cost: number | null): string | undefined {
  return cost === null ? undefined : `$${cost.toFixed(4)}`;
}
