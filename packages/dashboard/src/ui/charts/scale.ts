/** Marks of an axis that begins at zero. */
export interface Scale {
  /** From 0 up to the first round value that is not below the highest of the data. */
  readonly ticks: readonly number[];
  readonly top: number;
}

/** Two to five steps of 1, 2 or 5 times a power of ten, none below `leastStep`; an axis without data goes to 1. */
export function scaleFor(highest: number, leastStep = 0): Scale {
  const rough = (Number.isFinite(highest) && highest > 0 ? highest : 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(leastStep, ([1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999) ?? 10) * power);
  const steps = Math.max(1, Math.ceil((highest > 0 ? highest : 1) / step - 1e-9));
  // Counted up and not added up: sums of tenths are not round.
  const ticks = Array.from({ length: steps + 1 }, (_, at) => Number((at * step).toPrecision(12)));
  return { ticks, top: ticks.at(-1) ?? 1 };
}

/** Which of `count` labels are written when each takes `labelPx` of `widthPx`: every first, second, fifth …, so that none touches the next. */
export function labelEvery(count: number, widthPx: number, labelPx: number): number {
  const fit = Math.max(1, Math.floor(widthPx / labelPx));
  return Math.max(1, Math.ceil(count / fit));
}
