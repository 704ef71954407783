import type { TraceRecord, TraceStep } from '@gatehouse/contract';
import { describe, expect, test } from 'vitest';
import { allNodes, buildTrace, causeOf, closedAtFirst, findNode, isRunning, spanOf, visibleRows } from './trace-rows.ts';

const noTokens = { in: 0, out: 0, cached: 0, cacheWritten: 0 };

function record(id: string, more: Partial<TraceRecord> = {}): TraceRecord {
  return {
    id,
    kind: 'turn',
    traceId: 'a'.repeat(32),
    principalId: 'token:ada',
    startedAtMs: 1000,
    endedAtMs: 2000,
    outcome: 'ok',
    endReason: 'stop',
    error: null,
    model: null,
    modelCalls: 0,
    toolCalls: 0,
    toolErrors: 0,
    tokens: noTokens,
    costNano: 0,
    synthetic: false,
    refs: {},
    facts: {},
    steps: [],
    droppedSteps: 0,
    ...more,
  };
}

function step(id: number, more: Partial<TraceStep> = {}): TraceStep {
  return { id, kind: 'model', name: 'local/m', at: id * 10, ms: 10, outcome: 'ok', ...more };
}

const shape = (records: readonly TraceRecord[]): string[] =>
  visibleRows(buildTrace(records), new Set()).map(({ node, level }) => `${'-'.repeat(level - 1)}${node.id}`);

describe('the tree of a trace', () => {
  test('has attempts below their model call, in the order of time', () => {
    const steps = [
      step(0, { kind: 'context', name: 'prompt' }),
      step(1),
      step(2, { kind: 'attempt', parent: 1 }),
      step(3, { kind: 'tool', name: 'exec' }),
    ];
    expect(shape([record('tn_1', { steps })])).toEqual(['tn_1', '-tn_1#0', '-tn_1#1', '--tn_1#2', '-tn_1#3']);
  });

  test('has a sub-agent below the delegation that names its run, and a node of a graph below that of its graph', () => {
    const steps = [
      step(0, { kind: 'delegation', facts: { runId: 'sr_a' } }),
      step(1, { kind: 'delegation', facts: { graphId: 'gr_a' } }),
      step(2, { kind: 'tool', parent: 1 }),
    ];
    const records = [
      record('tn_9', { parentId: 'tn_1', startedAtMs: 1100, refs: { runId: 'sr_x', graphId: 'gr_a', nodeId: 'facts' } }),
      record('tn_5', { parentId: 'tn_1', startedAtMs: 1050, refs: { runId: 'sr_a' } }),
      record('tn_1', { steps }),
    ];
    expect(shape(records)).toEqual(['tn_1', '-tn_1#0', '--tn_5', '-tn_1#1', '--tn_1#2', '--tn_9']);
  });

  test('has the sub-agent of a sub-agent below that one, and what a root run belongs to below the turn that started it', () => {
    const rootRunId = 'root-turn-tn_1';
    const records = [
      record('tn_1'),
      record('tn_2', { rootRunId, startedAtMs: 1100, refs: { runId: 'sr_a' }, steps: [step(0, { kind: 'tool', facts: { runId: 'sr_b' } })] }),
      record('tn_3', { rootRunId, startedAtMs: 1200, refs: { runId: 'sr_b' } }),
    ];
    expect(shape(records)).toEqual(['tn_1', '-tn_2', '--tn_2#0', '---tn_3']);
  });

  test('has what a later part of a turn caused below that part', () => {
    const records = [
      record('tn_1', { endedAtMs: 1100 }),
      record('tn_1.1', { startedAtMs: 1500, parentId: 'tn_1' }),
      record('tn_2', { startedAtMs: 1600, parentId: 'tn_1' }),
    ];
    expect(shape(records)).toEqual(['tn_1', 'tn_1.1', '-tn_2']);
  });

  test('shows a record whose cause is missing, and records that name each other, at the top', () => {
    const records = [record('tn_1', { parentId: 'tn_gone' }), record('tn_2', { parentId: 'tn_3' }), record('tn_3', { parentId: 'tn_2' })];
    expect(
      shape(records)
        .map((line) => line.replace(/^-+/, ''))
        .toSorted(),
    ).toEqual(['tn_1', 'tn_2', 'tn_3']);
  });

  test('hides what is below a closed step', () => {
    const roots = buildTrace([record('tn_1', { steps: [step(0), step(1, { kind: 'attempt', parent: 0 }), step(2)] })]);
    const closed = closedAtFirst(allNodes(roots));
    expect([...closed]).toEqual(['tn_1#0']);
    expect(visibleRows(roots, closed).map(({ node, isOpen }) => [node.id, isOpen])).toEqual([
      ['tn_1', true],
      ['tn_1#0', false],
      ['tn_1#2', undefined],
    ]);
  });

  test('stays fast with thousands of steps in hundreds of records', () => {
    const records = Array.from({ length: 300 }, (_, at) =>
      record(`tn_${at}`, {
        startedAtMs: 1000 + at,
        ...(at > 0 && { parentId: `tn_${at - 1}` }),
        steps: Array.from({ length: 30 }, (__, id) => step(id)),
      }),
    );
    expect(visibleRows(buildTrace(records), new Set())).toHaveLength(300 * 31);
  });
});

test('the time axis lasts from the first start to the last end, or to now while something runs', () => {
  const done = allNodes(buildTrace([record('tn_1', { steps: [step(0, { at: 1500, ms: 200 })] })]));
  expect(spanOf(done, 9000)).toEqual({ fromMs: 1000, toMs: 2700 });
  const running = allNodes(buildTrace([record('tn_1', { endedAtMs: null, outcome: null, steps: [step(0)] })]));
  expect(running.map(isRunning)).toEqual([true, false]);
  expect(spanOf(running, 9000)).toEqual({ fromMs: 1000, toMs: 9000 });
});

test('a reference finds its record by the id of record, turn or run', () => {
  const nodes = allNodes(buildTrace([record('tn_1'), record('tn_2.1', { startedAtMs: 1200, refs: { runId: 'sr_a' } })]));
  expect(['tn_1', 'tn_2', 'tn_2.1', 'sr_a', 'root-turn-x'].map((ref) => findNode(nodes, ref)?.id)).toEqual([
    'tn_1',
    'tn_2.1',
    'tn_2.1',
    'tn_2.1',
    'tn_1',
  ]);
});

test('the cause of a failure is the last step that failed, in the turn or in what it delegated; a turn that did not fail has none', () => {
  const error = { kind: 'server', text: 'The server had an error' };
  const failing = [
    step(0, { kind: 'tool', outcome: 'error', error: { kind: 'tool_error' } }),
    step(1, { outcome: 'error', error }),
    step(2, { kind: 'attempt', parent: 1, outcome: 'error', error }),
  ];
  const [ok] = buildTrace([record('tn_1', { outcome: 'degraded', steps: failing })]);
  const [alone] = buildTrace([record('tn_1', { outcome: 'failed', steps: failing })]);
  const [above] = buildTrace([
    record('tn_0', { outcome: 'failed' }),
    record('tn_1', { parentId: 'tn_0', startedAtMs: 1100, outcome: 'failed', steps: failing }),
  ]);
  expect([ok, alone, above].map((node) => node && causeOf(node)?.id)).toEqual([undefined, 'tn_1#1', 'tn_1#1']);
});
