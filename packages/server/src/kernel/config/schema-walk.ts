import { isSection } from '@gatehouse/contract';
import * as z from 'zod';
import type { Path } from './config-error.ts';

type Schema = z.core.$ZodType;

/** Returns the layers of a schema from the outside in: `.optional()`, `.default()` and the like, then the inner schema. */
function layers(schema: Schema): Schema[] {
  const found: Schema[] = [];
  let current: Schema | undefined = schema;
  while (current !== undefined && found.length < 32) {
    found.push(current);
    current = inner(current);
  }
  return found;
}

function inner(schema: Schema): Schema | undefined {
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodReadonly ||
    schema instanceof z.ZodLazy
  )
    return schema.unwrap();
  if (schema instanceof z.ZodPipe) return schema.in;
  return undefined;
}

/** Returns the schema without `.optional()`, `.default()` and the like. */
export function bare(schema: Schema): Schema {
  return layers(schema).at(-1) ?? schema;
}

/** True when the schema or one of its layers has `.meta({ secret: true })`. */
export function isSecret(schema: Schema): boolean {
  return layers(schema).some((layer) => z.globalRegistry.get(layer)?.['secret'] === true);
}

/** Returns the description of the outermost layer that has one. */
export function descriptionOf(schema: Schema): string | undefined {
  for (const layer of layers(schema)) {
    const text = z.globalRegistry.get(layer)?.description;
    if (text !== undefined) return text;
  }
  return undefined;
}

/** Returns the default as it would be written, or undefined. That of a section does not count: its parts have their own. */
export function defaultOf(schema: Schema): { readonly value: unknown } | undefined {
  for (const layer of layers(schema)) if (layer instanceof z.ZodDefault && !isSection(layer)) return { value: layer._zod.def.defaultValue };
  return undefined;
}

/** Returns the schema one step down, or undefined when the schema has no such part. */
export function step(schema: Schema, part: string | number): Schema | undefined {
  const thing = bare(schema);
  if (thing instanceof z.ZodObject) return Object.hasOwn(thing.shape, part) ? thing.shape[part] : undefined;
  if (thing instanceof z.ZodRecord) return thing.valueType;
  if (thing instanceof z.ZodArray) return thing.element;
  if (thing instanceof z.ZodUnion) {
    for (const option of thing.options) {
      const found = step(option, part);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** Returns the schema at `path`, or undefined when the path leaves the schema. */
export function schemaAt(schema: Schema, path: Path): Schema | undefined {
  let current: Schema | undefined = schema;
  for (const part of path) {
    if (current === undefined) return undefined;
    current = step(current, part);
  }
  return current;
}

/** True when the schema at `path`, or one on the way to it, is secret. */
export function isSecretPath(schema: Schema, path: Path): boolean {
  let current: Schema | undefined = schema;
  for (const part of path) {
    if (current === undefined) return false;
    if (isSecret(current)) return true;
    current = step(current, part);
  }
  return current !== undefined && isSecret(current);
}

/**
 * True when a change at `path` takes effect without a restart: the schema there, or the nearest one on the way to it that has a mark,
 * says `.meta({ apply: 'live' })`. Everything else needs a restart.
 */
export function isLive(schema: Schema, path: Path): boolean {
  let current: Schema | undefined = schema;
  let mark = applyOf(schema);
  for (const part of path) {
    if (current === undefined) return false;
    current = step(current, part);
    mark = (current === undefined ? undefined : applyOf(current)) ?? mark;
  }
  return mark === 'live';
}

/** Returns the mark `apply` of the outermost layer that has one: whether a change takes effect without a restart. */
export function applyOf(schema: Schema): 'live' | 'restart' | undefined {
  for (const layer of layers(schema)) {
    const mark = z.globalRegistry.get(layer)?.['apply'];
    if (mark === 'live' || mark === 'restart') return mark;
  }
  return undefined;
}

/** Returns the keys that an object at this path may have; empty when any key is allowed. */
export function keysOf(schema: Schema): string[] {
  const thing = bare(schema);
  if (thing instanceof z.ZodObject) return Object.keys(thing.shape);
  if (thing instanceof z.ZodRecord) return thing.keyType instanceof z.ZodEnum ? thing.keyType.options.map(String) : [];
  if (thing instanceof z.ZodUnion) return thing.options.flatMap((option) => keysOf(option));
  return [];
}

/** Describes what the schema accepts: "an integer from 0 to 65535", "one of "a", "b"". */
export function expectation(schema: Schema): string {
  const thing = bare(schema);
  if (thing instanceof z.ZodEnum || thing instanceof z.ZodLiteral) {
    const values = thing instanceof z.ZodEnum ? thing.options : [...thing.values];
    return values.length === 1 ? JSON.stringify(values[0]) : `one of ${values.map((value) => JSON.stringify(value)).join(', ')}`;
  }
  if (thing instanceof z.ZodNumber) {
    const low = bound(thing.minValue);
    const high = bound(thing.maxValue);
    const what = thing.format?.includes('int') === true ? 'an integer' : 'a number';
    if (low !== undefined && high !== undefined) return `${what} from ${low} to ${high}`;
    if (low !== undefined) return `${what} of at least ${low}`;
    return high === undefined ? what : `${what} of at most ${high}`;
  }
  if (thing instanceof z.ZodURL) return 'a URL that starts with http:// or https://';
  if (thing instanceof z.ZodBoolean) return 'true or false';
  if (thing instanceof z.ZodArray) return 'a list';
  if (thing instanceof z.ZodObject || thing instanceof z.ZodRecord) return 'a section (keys with values below it)';
  if (thing instanceof z.ZodUnion) return thing.options.map((option) => expectation(option)).join(', or ');
  return 'text';
}

function bound(value: number | null): number | undefined {
  return value === null || Math.abs(value) >= Number.MAX_SAFE_INTEGER ? undefined : value;
}
