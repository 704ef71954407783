import type { ActivityList } from '@gatehouse/contract';
import type { FeedEntry } from './live.ts';

/** Converts stored events to entries of the feed; their numbers come before those of the tab. */
export function toEntries({ entries }: ActivityList): FeedEntry[] {
  return entries.map(({ id, event, payload, timestamp }) => ({ number: -id, id, kind: event, payload, atMs: timestamp }));
}

/** Joins stored events with those that arrived in this tab, oldest first, each once; live events are newer than stored ones except for an overlap. */
export function joinEntries(stored: readonly FeedEntry[], live: readonly FeedEntry[]): FeedEntry[] {
  const known = new Set(live.flatMap(({ id }) => (id === undefined ? [] : [id])));
  return [...stored.filter(({ id }) => id === undefined || !known.has(id)), ...live];
}
