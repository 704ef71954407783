import { percentile } from './raw.ts';

export interface Apart {
  /** Difference of the medians, in the unit of the samples. */
  readonly medians: number;
  /** Welch's t of the faster nine tenths of both: other load on the machine shows in the slowest. */
  readonly t: number;
}

/** Returns how far two sets of times are apart. */
export function apart(one: readonly number[], other: readonly number[]): Apart {
  const [a, b] = [momentsOf(trimmed(one)), momentsOf(trimmed(other))];
  const spread = Math.sqrt(a.variance / a.count + b.variance / b.count);
  return { medians: percentile(one, 0.5) - percentile(other, 0.5), t: spread === 0 ? 0 : (a.mean - b.mean) / spread };
}

const trimmed = (times: readonly number[]): readonly number[] => times.toSorted((a, b) => a - b).slice(0, Math.ceil(times.length * 0.9));

function momentsOf(values: readonly number[]): { readonly count: number; readonly mean: number; readonly variance: number } {
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / Math.max(1, count - 1);
  return { count, mean, variance };
}
