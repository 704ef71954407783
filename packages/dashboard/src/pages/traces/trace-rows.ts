import type { TraceRecord, TraceStep } from '@gatehouse/contract';

/** A record, or one of its steps, with what is part of it or was caused by it. */
export interface TraceNode {
  readonly id: string;
  readonly record: TraceRecord;
  /** Absent for the record itself. */
  readonly step: TraceStep | undefined;
  readonly startMs: number;
  /** Absent while it runs. */
  readonly endMs: number | undefined;
  readonly children: readonly TraceNode[];
}

/** A node that is visible: none above it is closed. */
export interface TraceRow {
  readonly node: TraceNode;
  /** 1 for the top level. */
  readonly level: number;
  readonly position: number;
  readonly siblings: number;
  /** Absent for a node without children. */
  readonly isOpen: boolean | undefined;
}

interface Growing extends TraceNode {
  readonly children: Growing[];
}

/** Returns the id of the turn that a record is a part of: later parts are numbered, `tn_….1`. */
export function turnOf(recordId: string): string {
  return recordId.replace(/\.\d+$/, '');
}

/** Joins records into trees: steps below their record, and each record below the step that caused it, or the record. */
export function buildTrace(records: readonly TraceRecord[]): readonly TraceNode[] {
  const ordered = records.toSorted((a, b) => a.startedAtMs - b.startedAtMs || (a.id < b.id ? -1 : 1));
  const known = new Map<string, Growing>();
  const parts = Map.groupBy(ordered, ({ id }) => turnOf(id));
  for (const record of ordered) known.set(record.id, nodeOf(record));
  const delegations = delegationsIn(known.values());
  const roots: Growing[] = [];
  for (const record of ordered) {
    const node = known.get(record.id);
    if (node === undefined) continue;
    const cause = parentOf(record, parts, known, delegations);
    if (cause === undefined) roots.push(node);
    else cause.children.push(node);
  }
  for (const node of known.values()) sortByStart(node);
  return roots;
}

function nodeOf(record: TraceRecord): Growing {
  const startMs = record.startedAtMs;
  const node: Growing = { id: record.id, record, step: undefined, startMs, endMs: record.endedAtMs ?? undefined, children: [] };
  const steps = new Map<number, Growing>();
  for (const step of record.steps) {
    const at = startMs + step.at;
    const one: Growing = {
      id: `${record.id}#${step.id}`,
      record,
      step,
      startMs: at,
      endMs: step.ms === undefined ? undefined : at + step.ms,
      children: [],
    };
    steps.set(step.id, one);
    ((step.parent === undefined ? undefined : steps.get(step.parent)) ?? node).children.push(one);
  }
  return node;
}

/** Returns the node that caused a record: the step that started its run or graph, or the part of the turn that ran then. */
function parentOf(
  record: TraceRecord,
  parts: ReadonlyMap<string, readonly TraceRecord[]>,
  known: ReadonlyMap<string, Growing>,
  delegations: ReadonlyMap<string, Growing>,
): Growing | undefined {
  const { runId, graphId } = record.refs;
  const step = delegations.get(runId ?? '') ?? delegations.get(graphId ?? '');
  if (step !== undefined) return isBelow(step.record, record, parts, delegations) ? undefined : step;
  const turn = causingTurn(record);
  if (turn === undefined) return undefined;
  const candidates = parts.get(turn) ?? [];
  const part = candidates.findLast(({ startedAtMs }) => startedAtMs <= record.startedAtMs) ?? candidates[0];
  return part === undefined || isBelow(part, record, parts, delegations) ? undefined : known.get(part.id);
}

/** Returns the turn that caused a record: it is named, or has started the root run. */
function causingTurn({ id, parentId, rootRunId }: TraceRecord): string | undefined {
  const turn = parentId ?? (rootRunId?.startsWith('root-turn-') === true ? rootRunId.slice('root-turn-'.length) : undefined);
  // A turn can't be a part of itself.
  return turn === undefined || turnOf(turn) === turnOf(id) ? undefined : turnOf(turn);
}

/** Guards against records that name each other as their cause. */
function isBelow(
  above: TraceRecord,
  record: TraceRecord,
  parts: ReadonlyMap<string, readonly TraceRecord[]>,
  delegations: ReadonlyMap<string, Growing>,
): boolean {
  const seen = new Set<string>();
  let at: TraceRecord | undefined = above;
  while (at !== undefined && !seen.has(at.id)) {
    if (turnOf(at.id) === turnOf(record.id)) return true;
    seen.add(at.id);
    const { runId, graphId }: TraceRecord['refs'] = at.refs;
    const step: Growing | undefined = delegations.get(runId ?? '') ?? delegations.get(graphId ?? '');
    at = step?.record ?? parts.get(causingTurn(at) ?? '')?.[0];
  }
  return false;
}

/** Returns the steps that started runs and graphs, by the ids of these. */
function delegationsIn(nodes: Iterable<Growing>): ReadonlyMap<string, Growing> {
  const found = new Map<string, Growing>();
  for (const node of nodes)
    for (const one of withSteps(node))
      for (const name of ['graphId', 'runId']) {
        const id = one.step?.facts?.[name];
        if (typeof id === 'string') found.set(id, one);
      }
  return found;
}

function withSteps(node: Growing): Growing[] {
  return node.children.flatMap((child) => [child, ...withSteps(child)]);
}

function sortByStart(node: Growing): void {
  node.children.sort((a, b) => a.startMs - b.startMs || (a.step?.id ?? Infinity) - (b.step?.id ?? Infinity));
  for (const child of node.children) if (child.step !== undefined) sortByStart(child);
}

/** Returns every node, each before what is below it. */
export function allNodes(roots: readonly TraceNode[]): TraceNode[] {
  return roots.flatMap((node) => [node, ...allNodes(node.children)]);
}

/** Returns the rows that are visible while `closed` hide what is below them. */
export function visibleRows(roots: readonly TraceNode[], closed: ReadonlySet<string>, level = 1): TraceRow[] {
  return roots.flatMap((node, index) => {
    const isOpen = node.children.length === 0 ? undefined : !closed.has(node.id);
    const row: TraceRow = { node, level, position: index + 1, siblings: roots.length, isOpen };
    return isOpen === true ? [row, ...visibleRows(node.children, closed, level + 1)] : [row];
  });
}

/** Model calls that needed one attempt only are closed at first. */
export function closedAtFirst(nodes: readonly TraceNode[]): ReadonlySet<string> {
  return new Set(nodes.filter(({ step, children }) => step?.kind === 'model' && children.length === 1 && !failed(children[0])).map(({ id }) => id));
}

function failed(node: TraceNode | undefined): boolean {
  return node?.step?.outcome === 'error' || node?.step?.outcome === 'denied';
}

/** First and last millisecond of what is shown; what still runs lasts until `nowMs`. */
export function spanOf(nodes: readonly TraceNode[], nowMs: number): { readonly fromMs: number; readonly toMs: number } {
  let fromMs = Infinity;
  let toMs = 0;
  for (const { startMs, endMs } of nodes) {
    fromMs = Math.min(fromMs, startMs);
    toMs = Math.max(toMs, endMs ?? nowMs);
  }
  return nodes.length === 0 ? { fromMs: nowMs, toMs: nowMs } : { fromMs, toMs: Math.max(toMs, fromMs) };
}

export function isRunning({ step, endMs, record }: TraceNode): boolean {
  return step === undefined ? record.endedAtMs === null : endMs === undefined && record.endedAtMs === null;
}

/** Returns the node that a reference names: a record, a turn, or a run, graph or job that it belongs to; the first one otherwise. */
export function findNode(nodes: readonly TraceNode[], reference: string): TraceNode | undefined {
  const records = nodes.filter(({ step }) => step === undefined);
  return (
    records.find(({ id }) => id === reference) ??
    records.find(({ id }) => turnOf(id) === reference) ??
    records.find(({ record }) => Object.values(record.refs).includes(reference)) ??
    records[0]
  );
}

/** Returns what explains the failure of a node: the last step in it, or in what it caused, that failed for a reason. */
export function causeOf(node: TraceNode): TraceNode | undefined {
  if (node.step === undefined ? node.record.outcome !== 'failed' : !failed(node)) return undefined;
  let found: TraceNode | undefined;
  for (const one of allNodes([node]))
    if (one.step?.error !== undefined && one.step.kind !== 'attempt' && (found === undefined || (one.endMs ?? 0) >= (found.endMs ?? 0))) found = one;
  return found;
}
