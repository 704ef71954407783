import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import { dotted, type Path } from './config-error.ts';
import { bare, step } from './schema-walk.ts';

/** Returns the paths at which two configurations differ: keys of sections and entries of records; a list is one value. */
export function changedKeys(schema: z.core.$ZodType, before: unknown, next: unknown): Path[] {
  const found: Path[] = [];
  const compare = (part: z.core.$ZodType | undefined, one: unknown, other: unknown, path: Path): void => {
    if (isDeepStrictEqual(one, other)) return;
    if (part === undefined || !isSection(part) || !isObject(one) || !isObject(other)) {
      found.push(path);
      return;
    }
    for (const key of new Set([...Object.keys(one), ...Object.keys(other)]))
      compare(step(part, key), Reflect.get(one, key), Reflect.get(other, key), [...path, key]);
  };
  compare(schema, before, next, []);
  return found.toSorted((a, b) => dotted(a).localeCompare(dotted(b)));
}

/** Returns those of `paths` that are one of `others`, or above or below one. */
export function overlapping(paths: readonly Path[], others: readonly Path[]): Path[] {
  const begins = (path: Path, beginning: Path) => beginning.every((part, index) => path[index] === part);
  return paths.filter((path) => others.some((other) => begins(path, other) || begins(other, path)));
}

function isSection(schema: z.core.$ZodType): boolean {
  const thing = bare(schema);
  return thing instanceof z.ZodObject || thing instanceof z.ZodRecord;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns `next` with the values that `before` has at `paths`, which are among its changed keys. */
export function withKept<T>(next: T, before: T, paths: readonly Path[]): T {
  return paths.reduce((value, path) => keepAt(value, before, path), next);
}

function keepAt<T>(next: T, before: unknown, path: Path): T {
  const [key, ...rest] = path;
  if (key === undefined || !isObject(next)) return before as T;
  const earlier = isObject(before) ? Reflect.get(before, key) : undefined;
  const value = keepAt(Reflect.get(next, key), earlier, rest);
  const { [key]: _, ...others } = next as Record<string | number, unknown>;
  return (value === undefined ? others : { ...next, [key]: value }) as T;
}
