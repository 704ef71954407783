import { isJsonObject, type Json, type JsonObject } from './json-schema.ts';

/** Finds a shared shape by the last part of its reference. */
export type SchemaLookup = (name: string) => JsonObject | undefined;

/** One property of an object, nested ones with the whole path: `a.b`, `list[].c`, `map.<key>.d`. */
export interface SchemaRow {
  readonly path: string;
  /** The schema with a reference at its top resolved; `reference` keeps the name. */
  readonly schema: JsonObject;
  readonly reference: string | undefined;
  readonly required: boolean;
  /** The alternatives of a union that have this property, such as `kind "every"`; absent when all have it. */
  readonly onlyWith?: string;
}

/** Resolves a reference at the top of a schema; keywords next to the reference override those of the target. */
export function resolveSchema(schema: JsonObject, lookup: SchemaLookup): { schema: JsonObject; reference: string | undefined } {
  const { allOf, $ref, ...siblings } = schema;
  const only = Array.isArray(allOf) && allOf.length === 1 ? allOf[0] : undefined;
  const reference = typeof $ref === 'string' ? $ref : isJsonObject(only) && typeof only['$ref'] === 'string' ? only['$ref'] : undefined;
  if (reference === undefined) return { schema, reference };
  const name = reference.slice(reference.lastIndexOf('/') + 1);
  const target = lookup(name);
  if (target === undefined) throw new Error(`The schema refers to ${reference}, which does not exist.`);
  return { schema: { ...resolveSchema(target, lookup).schema, ...siblings }, reference: name };
}

export interface RowOptions {
  readonly lookup: SchemaLookup;
  /** True expands shared shapes too; false leaves them to their own heading. */
  readonly openReferences: boolean;
}

/** The properties of an object schema as rows, depth first, in declared order. */
export function schemaRows(schema: JsonObject, options: RowOptions, prefix = ''): SchemaRow[] {
  const { properties, required, additionalProperties } = resolveSchema(schema, options.lookup).schema;
  const mandatory = new Set(Array.isArray(required) ? required : []);
  const rows: SchemaRow[] = [];
  for (const [name, property] of Object.entries(isJsonObject(properties) ? properties : {})) {
    if (!isJsonObject(property)) continue;
    const path = prefix + name;
    const resolved = resolveSchema(property, options.lookup);
    rows.push({ path, ...resolved, required: mandatory.has(name) });
    if (resolved.reference === undefined || options.openReferences) rows.push(...rowsInside(resolved.schema, options, path));
  }
  if (isJsonObject(additionalProperties) && Object.keys(additionalProperties).length > 0) {
    const path = `${prefix}<key>`;
    const resolved = resolveSchema(additionalProperties, options.lookup);
    rows.push({ path, ...resolved, required: false });
    if (resolved.reference === undefined || options.openReferences) rows.push(...rowsInside(resolved.schema, options, path));
  }
  return rows;
}

function rowsInside(schema: JsonObject, options: RowOptions, path: string): SchemaRow[] {
  const { items, anyOf, oneOf } = schema;
  const choices = anyOf ?? oneOf;
  if (Array.isArray(choices)) {
    const alternatives = choices.filter(isJsonObject).map((choice) => {
      const { schema: resolved, reference } = resolveSchema(choice, options.lookup);
      const rows = reference === undefined || options.openReferences ? rowsInside(resolved, options, path) : [];
      return { label: discriminatorOf(resolved, options.lookup), rows };
    });
    return joinAlternatives(alternatives.filter(({ rows }) => rows.length > 0));
  }
  if (!isJsonObject(items)) return schemaRows(schema, options, `${path}.`);
  const element = resolveSchema(items, options.lookup);
  return element.reference === undefined || options.openReferences ? schemaRows(element.schema, options, `${path}[].`) : [];
}

interface Alternative {
  readonly label: string | undefined;
  readonly rows: readonly SchemaRow[];
}

/** Lists each property of a union once, with all values that it has in the alternatives, and names those that have it when not all do. */
function joinAlternatives(alternatives: readonly Alternative[]): SchemaRow[] {
  const paths = new Set(alternatives.flatMap(({ rows }) => rows.map((row) => row.path)));
  return [...paths].flatMap((path) => {
    const having = alternatives.flatMap(({ label, rows }) => rows.filter((row) => row.path === path).map((row) => ({ label, row })));
    const [first] = having;
    if (first === undefined) return [];
    const labels = having.flatMap(({ label }) => label ?? []);
    const isShared = having.length === alternatives.length || labels.length < having.length;
    return [{ ...joinRows(having.map(({ row }) => row)), ...(isShared ? {} : { onlyWith: [...new Set(labels)].join(' or ') }) }];
  });
}

function joinRows(rows: readonly SchemaRow[]): SchemaRow {
  const [first] = rows;
  if (first === undefined) throw new RangeError('no row to join');
  const different = rows.filter(({ schema }, at) => rows.findIndex((other) => JSON.stringify(other.schema) === JSON.stringify(schema)) === at);
  if (different.length === 1) return first;
  return {
    path: first.path,
    schema: { anyOf: different.map(({ schema }) => schema), ...sharedNotes(rows.map(({ schema }) => schema)) },
    reference: undefined,
    required: rows.every(({ required }) => required),
  };
}

/** Returns what is said about a value beyond its type: the first description, a secret of any alternative, and what all have in common. */
function sharedNotes(schemas: readonly JsonObject[]): JsonObject {
  const notes: Record<string, Json> = {};
  for (const [key, value] of schemas.flatMap((schema) => Object.entries(schema))) {
    const isCommon = schemas.every((schema) => JSON.stringify(schema[key]) === JSON.stringify(value));
    if (value !== undefined && (key === 'description' || key === 'secret' || (isCommon && !typeKeys.has(key)))) notes[key] ??= value;
  }
  return notes;
}

/** Keywords that `typeText` reads: the alternatives keep them. */
const typeKeys: ReadonlySet<string> = new Set([
  '$ref',
  'allOf',
  'anyOf',
  'oneOf',
  'const',
  'enum',
  'type',
  'items',
  'properties',
  'additionalProperties',
]);

/** Returns what distinguishes an alternative from the others: its first property with a constant value. */
function discriminatorOf({ properties }: JsonObject, lookup: SchemaLookup): string | undefined {
  for (const [name, property] of Object.entries(isJsonObject(properties) ? properties : {})) {
    const { schema } = isJsonObject(property) ? resolveSchema(property, lookup) : { schema: {} };
    if ('const' in schema) return `${name} ${JSON.stringify(schema['const'])}`;
  }
  return undefined;
}

/** Describes the type of a value briefly: `integer, 1 to 200`, `"a" or "b"`, `list of AgentId`. */
export function typeText(schema: JsonObject, nameOf: (reference: string) => string = (name) => name): string {
  const { $ref, allOf, anyOf, oneOf, type, items, additionalProperties, properties } = schema;
  if (typeof $ref === 'string') return nameOf($ref.slice($ref.lastIndexOf('/') + 1));
  if (Array.isArray(allOf) && isJsonObject(allOf[0])) return typeText(allOf[0], nameOf);
  if ('const' in schema) return JSON.stringify(schema['const']);
  if (Array.isArray(schema['enum'])) return alternatives(schema['enum'].map((value) => JSON.stringify(value)));
  const choices = anyOf ?? oneOf;
  if (Array.isArray(choices)) return alternatives(choices.flatMap((choice) => (isJsonObject(choice) ? [typeText(choice, nameOf)] : [])));
  if (Array.isArray(type)) return alternatives(type.map(String));
  if (type === 'array') return `list of ${isJsonObject(items) ? typeText(items, nameOf) : 'any value'}${bounds(schema, 'minItems', 'maxItems', '')}`;
  if (type === 'object' && properties === undefined) {
    const isMap = isJsonObject(additionalProperties) && Object.keys(additionalProperties).length > 0;
    return isMap ? `map of ${typeText(additionalProperties, nameOf)}` : 'object';
  }
  if (type === 'string')
    return (isRealFormat(schema['format']) ? `string (${schema['format']})` : 'string') + bounds(schema, 'minLength', 'maxLength', ' characters');
  if (type === 'integer' || type === 'number') return type + bounds(schema, 'minimum', 'maximum', '');
  return typeof type === 'string' ? type : 'any value';
}

/** zod also puts the names of its internal checks there (`starts_with`), which mean nothing to a reader. */
function isRealFormat(format: Json | undefined): format is string {
  return typeof format === 'string' && !format.includes('_');
}

function alternatives(texts: readonly string[]): string {
  const unique = [...new Set(texts)];
  const last = unique.at(-1) ?? 'any value';
  return unique.length < 2 ? last : `${unique.slice(0, -1).join(', ')} or ${last}`;
}

function bounds(schema: JsonObject, lowKey: string, highKey: string, unit: string): string {
  const low = bound(schema[lowKey]);
  const high = bound(schema[highKey]);
  if (low === undefined && high === undefined) return '';
  if (low !== undefined && low === high) return `, exactly ${low}${unit}`;
  if (low !== undefined && high !== undefined) return `, ${low} to ${high}${unit}`;
  if (high !== undefined) return `, at most ${high}${unit}`;
  return low === 1 && unit !== '' ? ', not empty' : `, at least ${low}${unit}`;
}

/** The ends of the safe integers are a limit of JSON numbers, not of the field. */
function bound(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Math.abs(value) !== Number.MAX_SAFE_INTEGER ? value : undefined;
}
