import type { Values } from './client.ts';

/** Entries of this name, and list entries whose `name` begins with it, belong to `gatehouse connect` and are replaced as a whole. */
export const own = 'gatehouse';

/** A file has a value of another type than the client's configuration needs. */
export class ShapeError extends Error {}

/** Merges `wanted` into `before`: maps are merged, lists keep foreign entries, everything else is replaced; undefined removes. */
export function mergeValues(before: Values, wanted: Values, path: readonly string[] = []): Values {
  const merged = new Map(Object.entries(before));
  for (const [key, value] of Object.entries(wanted)) {
    const next = value === undefined ? undefined : mergeValue(merged.get(key), value, [...path, key]);
    // Removes a map that is empty after the removal.
    if (next === undefined || (isValues(next) && Object.keys(next).length === 0 && isValues(value) && Object.keys(value).length > 0))
      merged.delete(key);
    else merged.set(key, next);
  }
  return Object.fromEntries(merged);
}

function mergeValue(before: unknown, wanted: unknown, path: readonly string[]): unknown {
  if (isValues(wanted)) {
    if (before === undefined || before === null || path.at(-1) === own) return mergeValues({}, wanted, path);
    if (!isValues(before)) throw new ShapeError(`\`${path.join('.')}\` is not a map`);
    return mergeValues(before, wanted, path);
  }
  if (!Array.isArray(wanted) || before === undefined || before === null) return wanted;
  if (!Array.isArray(before)) throw new ShapeError(`\`${path.join('.')}\` is not a list`);
  return [...wanted, ...before.filter((entry) => !isOwn(entry))];
}

export function isOwn(entry: unknown): boolean {
  return isValues(entry) && typeof entry['name'] === 'string' && entry['name'].split(' ')[0] === own;
}

export function isValues(value: unknown): value is Values {
  // A raw number has no prototype and is frozen.
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Date) return false;
  return !(Object.isFrozen(value) && Object.getPrototypeOf(value) === null);
}
