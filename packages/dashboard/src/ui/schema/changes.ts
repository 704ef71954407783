import { isRecord, type Path, valueAt, withValueAt } from './paths.ts';

/** A value to write at a path; null removes the key. */
export interface Change {
  readonly path: Path;
  readonly value: unknown;
}

/** What the gateway shows instead of a secret, and never accepts as a value. */
export const hiddenSecret = '[REDACTED]';

/**
 * Returns what turns one document into the other, as single keys: no change holds a secret that the page can't see.
 * In a list with such secrets items are removed and added one by one, and their order stays.
 */
export function changesBetween(before: unknown, after: unknown, path: Path = []): readonly Change[] {
  if (before === after) return [];
  if (isRecord(before) && isRecord(after)) {
    const removed = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
    return [
      ...removed.map((key): Change => ({ path: [...path, key], value: null })),
      ...Object.keys(after).flatMap((key) => changesBetween(Object.hasOwn(before, key) ? before[key] : undefined, after[key], [...path, key])),
    ];
  }
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (Array.isArray(before) && Array.isArray(after) && holdsHidden(after)) return listChanges(before, after, path);
  // A new section is written key by key, so that a message names the key; an empty one as such.
  if (before === undefined && isRecord(after) && Object.keys(after).length > 0)
    return Object.entries(after).flatMap(([key, value]) => changesBetween(undefined, value, [...path, key]));
  return [{ path, value: after ?? null }];
}

function listChanges(before: readonly unknown[], after: readonly unknown[], path: Path): readonly Change[] {
  const kept = new Set(after.map(nameOf));
  const gone = before.length === after.length ? [] : before.flatMap((item, index) => (kept.has(nameOf(item)) ? [] : [index]));
  const rest = before.filter((_, index) => !gone.includes(index));
  return [
    ...gone.toReversed().map((index): Change => ({ path: [...path, index], value: null })),
    ...after.flatMap((item, index) => changesBetween(rest[index], item, [...path, index])),
    ...rest.slice(after.length).map((): Change => ({ path: [...path, after.length], value: null })),
  ];
}

function nameOf(item: unknown): string {
  return isRecord(item) && typeof item['id'] === 'string' ? item['id'] : JSON.stringify(item);
}

function holdsHidden(value: unknown): boolean {
  return JSON.stringify(value).includes(hiddenSecret);
}

/** Makes the changes in another document, which may lack what they refer to. */
export function applyChanges(document: unknown, changes: readonly Change[]): unknown {
  return changes.reduce<unknown>((current, { path, value }) => {
    if (value !== null) return withValueAt(current, path, value);
    return valueAt(current, path) === undefined ? current : (withValueAt(current, path, undefined) ?? {});
  }, document);
}
