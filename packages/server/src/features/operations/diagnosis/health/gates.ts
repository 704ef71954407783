import type { GateCounts, HealthFacts, ValidCounts } from './facts.ts';

const leastAuthorings = 20;
const leastPoints = 15;

/** Decides whether an author for small models would pay: enough graphs of small models, valid clearly less often than those of frontier models. */
export function pipelineGate({ small, frontier }: HealthFacts['authored']): { readonly buildAuthor: boolean; readonly reason: string } {
  if (small.total < leastAuthorings)
    return { buildAuthor: false, reason: `${small.total} of ${leastAuthorings} graphs of small models in the window.` };
  if (frontier.total === 0) return { buildAuthor: false, reason: 'No graph of a frontier model to compare with.' };
  const isBelow = pointsBelow(small, frontier);
  const validity = `Graphs of small models are valid in ${percentOf(small)} %, those of frontier models in ${percentOf(frontier)} %.`;
  return { buildAuthor: isBelow, reason: validity };
}

/** Exact in integers: 14.99 points are fewer than 15. */
function pointsBelow(small: ValidCounts, frontier: ValidCounts): boolean {
  return 100 * (frontier.valid * small.total - small.valid * frontier.total) >= leastPoints * small.total * frontier.total;
}

const percentOf = ({ valid, total }: ValidCounts) => Math.round((valid / total) * 1000) / 10;

export function gateTotals(gates: readonly GateCounts[]): GateCounts {
  const sum = (name: keyof GateCounts) => gates.reduce((total, gate) => total + gate[name], 0);
  return { fires: sum('fires'), skipped: sum('skipped'), failedOpen: sum('failedOpen'), turnsSaved: sum('turnsSaved'), toolCalls: sum('toolCalls') };
}
