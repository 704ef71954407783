export function median(values: readonly number[]): number {
  const sorted = values.filter((value) => !Number.isNaN(value)).toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2;
}

/** `values` ascending. */
export function percentile(values: readonly number[], share: number): number {
  return values[Math.min(values.length - 1, Math.floor(values.length * share))] ?? NaN;
}

/** Ratio of each round's pair: what both saw of the machine's noise in that round cancels out. */
export function pairedRatios(values: readonly number[], references: readonly number[]): number[] {
  return values.map((value, round) => value / (references[round] ?? NaN));
}
