import { isJsonObject, type Json, type JsonObject, type SchemaLookup, typeText } from '@gatehouse/contract';
import { usageError } from '../failure.ts';
import { alternativesOf } from './method-shape.ts';

/** Order in which the alternatives of a union are tried: a string accepts everything, so it comes last. */
const tryOrder = ['null', 'boolean', 'integer', 'number', 'array', 'object', 'string'];

/** Parses the text of a flag by its schema; a list accepts a JSON list or one element. */
export function readFlagValue(flag: string, text: string, schema: JsonObject, lookup: SchemaLookup): Json {
  const choices = alternativesOf(schema, lookup).toSorted((a, b) => rank(a) - rank(b));
  for (const choice of choices) {
    const value = readAs(text, choice, lookup);
    if (value !== undefined) return value;
  }
  throw usageError(`--${flag}: expected ${typeText(schema, (name) => typeText(lookup(name) ?? {}))}, got ${JSON.stringify(text)}.`);
}

function rank({ type }: JsonObject): number {
  return typeof type === 'string' ? tryOrder.indexOf(type) : -1;
}

function readAs(text: string, schema: JsonObject, lookup: SchemaLookup): Json | undefined {
  if ('const' in schema) return [schema['const'] ?? null].find((value) => asText(value) === text);
  if (Array.isArray(schema['enum'])) return schema['enum'].find((value: Json) => asText(value) === text);
  switch (schema['type']) {
    case 'null':
      return text === 'null' ? null : undefined;
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : undefined;
    case 'integer':
    case 'number':
      return readNumber(text, schema['type'] === 'integer');
    case 'string':
      return text;
    case 'array':
      return readList(text, schema, lookup);
    case 'object': {
      const value = tryJson(text);
      return isJsonObject(value) ? value : undefined;
    }
    default:
      return tryJson(text) === undefined ? text : tryJson(text);
  }
}

function readNumber(text: string, whole: boolean): number | undefined {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  return Number.isFinite(value) && (!whole || Number.isInteger(value)) ? value : undefined;
}

function readList(text: string, { items }: JsonObject, lookup: SchemaLookup): Json | undefined {
  const list = text.startsWith('[') ? tryJson(text) : undefined;
  if (Array.isArray(list)) return list;
  for (const choice of alternativesOf(isJsonObject(items) ? items : {}, lookup)) {
    const element = readAs(text, choice, lookup);
    if (element !== undefined) return [element];
  }
  return undefined;
}

function tryJson(text: string): Json | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function asText(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** True when the flag needs no value and means `true`. */
export function isSwitch(schema: JsonObject, lookup: SchemaLookup): boolean {
  return alternativesOf(schema, lookup).some((choice) => choice['type'] === 'boolean');
}
