import { t } from '../../language.ts';
/** The subset of JSON Schema that the forms support. */
export interface Schema {
  readonly [key: string]: unknown;
}

export type Lookup = (schema: unknown) => Schema;

export function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const maxHops = 20;

/** Resolves references to the shared schemas of a document; keys next to a reference override it. */
export function createLookup(shared: Schema): Lookup {
  return (schema) => {
    let current = isSchema(schema) ? schema : {};
    for (let hop = 0; hop < maxHops; hop++) {
      const { $ref, allOf, ...siblings } = current;
      const only: unknown = Array.isArray(allOf) && allOf.length === 1 ? allOf[0] : undefined;
      const reference = typeof $ref === 'string' ? $ref : isSchema(only) && typeof only['$ref'] === 'string' ? only['$ref'] : undefined;
      if (reference === undefined) return current;
      const target = shared[reference.slice(reference.lastIndexOf('/') + 1)];
      current = { ...(isSchema(target) ? target : {}), ...siblings };
    }
    return current;
  };
}

export type FieldShape =
  | { readonly kind: 'choice'; readonly options: readonly string[] }
  | { readonly kind: 'boolean' }
  | { readonly kind: 'number'; readonly min: number | undefined; readonly max: number | undefined; readonly whole: boolean }
  | { readonly kind: 'text'; readonly long: boolean }
  | { readonly kind: 'choices'; readonly options: readonly string[] }
  | { readonly kind: 'lines' }
  | { readonly kind: 'object'; readonly fields: readonly { readonly name: string; readonly schema: Schema; readonly required: boolean }[] }
  | { readonly kind: 'record'; readonly names: readonly string[] | undefined; readonly entry: Schema }
  | { readonly kind: 'items'; readonly item: Schema }
  | { readonly kind: 'json' };

/** Returns the control for a schema; JSON when no other one fits. */
export function shapeOf(given: unknown, lookup: Lookup): FieldShape {
  const schema = lookup(given);
  const options = stringsOf(schema['enum']);
  if (options !== undefined) return { kind: 'choice', options };
  switch (schema['type']) {
    case 'boolean':
      return { kind: 'boolean' };
    case 'integer':
    case 'number':
      return { kind: 'number', min: numberOf(schema['minimum']), max: numberOf(schema['maximum']), whole: schema['type'] === 'integer' };
    case 'string':
      return { kind: 'text', long: (numberOf(schema['maxLength']) ?? 0) > 1000 };
    case 'array':
      return shapeOfList(lookup(schema['items']));
    case 'object':
      return shapeOfObject(schema, lookup);
    default:
      return { kind: 'json' };
  }
}

function shapeOfList(items: Schema): FieldShape {
  const options = stringsOf(items['enum']);
  if (options !== undefined) return { kind: 'choices', options };
  if (items['type'] === 'object') return { kind: 'items', item: items };
  return items['type'] === 'string' ? { kind: 'lines' } : { kind: 'json' };
}

function shapeOfObject(schema: Schema, lookup: Lookup): FieldShape {
  const { properties, additionalProperties } = schema;
  if (!isSchema(properties) || Object.keys(properties).length === 0) {
    if (!isSchema(additionalProperties) || Object.keys(additionalProperties).length === 0) return { kind: 'json' };
    return { kind: 'record', names: stringsOf(lookup(schema['propertyNames'])['enum']), entry: additionalProperties };
  }
  const required = new Set(stringsOf(schema['required']) ?? []);
  return {
    kind: 'object',
    fields: Object.entries(properties).map(([name, one]) => ({ name, schema: isSchema(one) ? one : {}, required: required.has(name) })),
  };
}

function stringsOf(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) && value.every((one): one is string => typeof one === 'string') ? value : undefined;
}

function numberOf(value: unknown): number | undefined {
  // Generated schemas limit integers to the safe range, which isn't worth showing.
  return typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER ? value : undefined;
}

/** Returns the hint of a field: its description, bounds and default. */
export function hintOf(given: unknown, lookup: Lookup): string | undefined {
  const schema = lookup(given);
  const min = numberOf(schema['minimum']);
  const max = numberOf(schema['maximum']);
  const parts = [
    typeof schema['description'] === 'string' ? schema['description'] : undefined,
    min !== undefined && max !== undefined ? t('{min} to {max}.', { min, max }) : undefined,
    isPlain(schema['default']) ? t('Default: {schema}.', { schema: String(schema['default']) }) : undefined,
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? undefined : parts.join(' ');
}

function isPlain(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}
