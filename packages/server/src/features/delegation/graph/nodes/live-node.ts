import type { GraphNodeState } from '@gatehouse/contract';
import type { Done, Said } from './drivers.ts';
import type { SpecNode } from '../definition/definition.ts';
import { type NodeRow, stepsIn } from '../rows.ts';
import type { NodeChange } from '../store.ts';

/** A node of a graph that runs in this process. */
export interface NodeNow {
  readonly spec: SpecNode;
  state: GraphNodeState;
  attempt: number;
  /** The latest run. */
  runId: string | null;
  done: (readonly Said[])[];
  output: string | null;
  error: string | null;
  /** Why its last run that failed did so; null once it has completed. */
  cause: string | null;
  partial: boolean;
  /** Calls of its runs that needed an approval and were not run. */
  effectsRefused: number;
  /** A run of it had read text from outside: what it says is such text for others. */
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
  /** Of a gate that waits: its row has an answer. */
  answered: (() => void) | undefined;
}

export function nodeNow(spec: SpecNode, row: NodeRow): NodeNow {
  const { state, attempt, runId, output, error, cause, effectsRefused, answer, answerText, tokens, costNano, startedAtMs, deadlineMs, endedAtMs } =
    row;
  return {
    spec,
    state,
    attempt,
    runId,
    output,
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

export function changeOf(node: NodeNow): NodeChange {
  const { spec, state, attempt, runId, output, error, cause, effectsRefused, tokens, costNano, startedAtMs, deadlineMs, endedAtMs } = node;
  // What the steps gave is of no use once the node has its output.
  const steps: Done = endedAtMs === null ? node.done : [];
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
