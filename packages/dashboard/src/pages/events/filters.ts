import { t } from '../../language.ts';
import type { EventKind } from '@gatehouse/contract';
import { eventKinds } from '../../data/event-kinds.ts';
import type { FeedEntry } from '../../data/live.ts';

export const categories = [...new Set(eventKinds.map(({ category }) => category))];
const categoryOf = new Map<string, string>(eventKinds.map(({ kind, category }) => [kind, category]));

export function isKind(kind: string): kind is EventKind {
  return categoryOf.has(kind);
}

/** Times that can be shown. `custom`: between two times that the user enters. */
export const ranges = [
  { id: 'newest', name: t('Newest') },
  { id: 'hour', name: t('Last hour'), ms: 3_600_000 },
  { id: 'day', name: t('Last 24 hours'), ms: 86_400_000 },
  { id: 'week', name: t('Last 7 days'), ms: 604_800_000 },
  { id: 'custom', name: t('Between…') },
] as const;
export type RangeId = (typeof ranges)[number]['id'];

export interface EventFilters {
  readonly kind: EventKind | undefined;
  readonly range: RangeId;
  readonly sinceMs: number | undefined;
  readonly untilMs: number | undefined;
}

export const noFilters: EventFilters = { kind: undefined, range: 'newest', sinceMs: undefined, untilMs: undefined };

/** Returns the times of a range that is chosen now; those of `custom` stay as they are. */
export function chooseRange(filters: EventFilters, range: RangeId, nowMs: number): EventFilters {
  if (range === 'custom') return { ...filters, range };
  const chosen = ranges.find(({ id }) => id === range);
  return { ...filters, range, sinceMs: chosen !== undefined && 'ms' in chosen ? nowMs - chosen.ms : undefined, untilMs: undefined };
}

/** Returns what matches, newest first. */
export function filterEntries(
  entries: readonly FeedEntry[],
  { kind: only, sinceMs = 0, untilMs = Infinity }: Omit<EventFilters, 'range'>,
  { off, query }: { readonly off: ReadonlySet<string>; readonly query: string },
): readonly FeedEntry[] {
  const wanted = query.trim().toLocaleLowerCase();
  return entries
    .filter(({ kind, payload, atMs }) => {
      if (atMs < sinceMs || atMs >= untilMs) return false;
      if (kind === 'gap') return only === undefined;
      // A kind that was asked for is shown whatever its category.
      if (only === undefined ? off.has(categoryOf.get(kind) ?? t('System')) : kind !== only) return false;
      return wanted === '' || kind.includes(wanted) || JSON.stringify(payload).toLocaleLowerCase().includes(wanted);
    })
    .toReversed();
}
