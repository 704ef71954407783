import type { GraphNodeState } from '@gatehouse/contract';
import type { RunResult, StepResults } from './drivers.ts';
import type { SpecNode } from '../definition/definition.ts';
import { type NodeRow, stepsIn } from '../rows.ts';
import type { NodeChange } from '../store.ts';

/** A node of a graph that runs in this process. */
export interface LiveNode {
  readonly spec: SpecNode;
  state: GraphNodeState;
  attempt: number;
  /** The latest run. */
  runId: string | null;
  done: (readonly RunResult[])[];
  output: string | null;
  /** Summary of its output that an earlier process made; empty when it cannot be used. */
  readonly summary: string | null;
  error: string | null;
  /** Why its last failed run failed; null once the node has completed. */
  cause: string | null;
  partial: boolean;
  /** Calls of its runs that needed an approval and were not run. */
  effectsRefused: number;
  /** Whether a run of it had read text from outside, so that others must treat its text as untrusted. */
  tainted: boolean;
  answer: NodeRow['answer'];
  answerText: string | null;
  tokens: number;
  costNano: number;
  unpriced: boolean;
  startedAtMs: number | null;
  deadlineMs: number | null;
  endedAtMs: number | null;
  /** One line for people. */
  progress: string | undefined;
  /** Set while a gate is pending; called when its answer has been stored. */
  answered: (() => void) | undefined;
}

export function toLiveNode(spec: SpecNode, row: NodeRow): LiveNode {
  const {
    state,
    attempt,
    runId,
    output,
    summary,
    error,
    cause,
    effectsRefused,
    answer,
    answerText,
    tokens,
    costNano,
    startedAtMs,
    deadlineMs,
    endedAtMs,
  } = row;
  return {
    spec,
    state,
    attempt,
    runId,
    output,
    summary,
    error,
    cause,
    effectsRefused,
    answer,
    answerText,
    tokens,
    costNano,
    startedAtMs,
    deadlineMs,
    endedAtMs,
    done: stepsIn(row),
    partial: row.partial === 1,
    tainted: row.tainted === 1,
    unpriced: row.unpriced === 1,
    progress: undefined,
    answered: undefined,
  };
}

export function changeOf(node: LiveNode): NodeChange {
  const { spec, state, attempt, runId, output, error, cause, effectsRefused, tokens, costNano, startedAtMs, deadlineMs, endedAtMs } = node;
  // The results of the steps are not needed once the node has its output.
  const steps: StepResults = endedAtMs === null ? node.done : [];
  return {
    nodeId: spec.id,
    state,
    attempt,
    runId,
    output,
    error,
    cause,
    effectsRefused,
    tokens,
    costNano,
    startedAtMs,
    deadlineMs,
    endedAtMs,
    stepsJson: JSON.stringify(steps),
    partial: Number(node.partial),
    tainted: Number(node.tainted),
    unpriced: Number(node.unpriced),
  };
}
