/** Axis marks starting at zero. */
export interface Scale {
  /** Marks from 0 to the first round value that is not below the highest data value. */
  readonly ticks: readonly number[];
  readonly top: number;
}

/** Returns two to five steps of 1, 2 or 5 times a power of ten, none below `leastStep`; an axis without data ends at 1. */
export function scaleFor(highest: number, leastStep = 0): Scale {
  const rough = (Number.isFinite(highest) && highest > 0 ? highest : 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(leastStep, ([1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999) ?? 10) * power);
  const steps = Math.max(1, Math.ceil((highest > 0 ? highest : 1) / step - 1e-9));
  // Multiplies instead of adding, because sums of tenths are not round.
  const ticks = Array.from({ length: steps + 1 }, (_, at) => Number((at * step).toPrecision(12)));
  return { ticks, top: ticks.at(-1) ?? 1 };
}

/** Returns n so that every n-th of `count` labels fits: labels of `labelPx` then don't touch within `widthPx`. */
export function labelEvery(count: number, widthPx: number, labelPx: number): number {
  const fit = Math.max(1, Math.floor(widthPx / labelPx));
  return Math.max(1, Math.ceil(count / fit));
}
