import { t } from '../language.ts';
import { duration } from '../data/format.ts';
import { useNow } from '../data/use-now.ts';

/** Shows how long something took, or has taken so far. */
export function Elapsed({ fromMs, toMs }: { readonly fromMs: number; readonly toMs: number | undefined }) {
  return toMs === undefined ? <Running fromMs={fromMs} /> : <span>{spanText(toMs - fromMs)}</span>;
}

function Running({ fromMs }: { readonly fromMs: number }) {
  return <span>{duration(Math.max(0, useNow() - fromMs) / 1000)}</span>;
}

export function spanText(ms: number): string {
  return ms < 1000 ? t('{max} ms', { max: Math.max(0, ms) }) : duration(ms / 1000);
}
