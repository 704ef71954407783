import { hash } from 'node:crypto';

/** Returns a digest that ignores the order of keys and keys with undefined values. */
export function digestOf(value: object): string {
  return hash('sha256', JSON.stringify(sorted(value)), 'base64url');
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, sorted(item)]),
  );
}
