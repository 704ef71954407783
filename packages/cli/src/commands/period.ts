import { usageError } from '../failure.ts';

const periodMs: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses a period such as 90d, 12h or 30m into milliseconds. */
export function readPeriod(flag: string, text: string): number {
  const [, count, unit = ''] = /^(\d+)([mhd])$/.exec(text) ?? [];
  const ms = Number(count) * (periodMs[unit] ?? Number.NaN);
  if (!(ms > 0)) throw usageError(`${flag}: expected a number with m, h or d, such as 90d, got ${JSON.stringify(text)}.`);
  return ms;
}
