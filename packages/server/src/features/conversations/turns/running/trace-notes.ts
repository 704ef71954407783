import type { TurnTrace } from '../../../../runtime/turn-trace.ts';
import type { TurnResult } from '../../../../runtime/turn.ts';
import type { PreparedTurn } from './turn-input.ts';

/** Notes what was put before the question of a turn that begins. */
export function notePreparation(trace: TurnTrace, { recalls, remembered, skills }: PreparedTurn): void {
  if (recalls === true) {
    const finalCount = remembered?.ids.length ?? 0;
    trace.note('recall', 'memories', { recalls: 1, zeroHits: finalCount === 0 ? 1 : 0, finalCount, reranker: false });
  }
  for (const name of skills?.names ?? []) trace.note('skill', name, { injected: true, used: true });
}

/** Notes whether a turn that ends did what it was asked for, as far as its end shows it. */
export function noteOutcome(trace: TurnTrace, { failure, finishReason, waiting }: TurnResult): void {
  if (waiting !== undefined) return;
  const outcome = finishReason === 'aborted' ? 'unknown' : failure !== undefined ? 'failure' : finishReason === 'stop' ? 'success' : 'unknown';
  trace.note('outcome', outcome, outcomes[outcome]);
}

/** One object for each: a turn only reads it. */
const outcomes = {
  success: { resolved: true, outcome: 'success', sources: 'finish_reason' },
  failure: { resolved: true, outcome: 'failure', sources: 'finish_reason' },
  unknown: { resolved: false, outcome: 'unknown', sources: 'finish_reason' },
} as const;
