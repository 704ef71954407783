import * as z from 'zod';
import { sectionDefault } from './section.ts';

export type Json = string | number | boolean | null | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/** `input` is what a caller writes (defaults may be omitted), `output` what it receives. */
export type SchemaSide = 'input' | 'output';

export interface SchemaDialect {
  readonly target: 'draft-7' | 'draft-2020-12';
  /** Prefix of references to shared shapes, such as `#/components/schemas/`. */
  readonly refPrefix: string;
}

export interface SchemaUse {
  readonly schema: z.ZodType;
  readonly side: SchemaSide;
}

const JsonRecord = z.record(z.string(), z.json());

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Converts zod shapes to JSON Schemas that share one set of components: each shape with `.meta({ id })` becomes one.
 * A shape with different input and output forms (because of defaults) becomes two components, `X` and `XInput`;
 * two different shapes with one id are an error.
 */
export function createSchemaWriter(uses: readonly SchemaUse[], dialect: SchemaDialect) {
  const definitions: Record<SchemaSide, Map<string, JsonObject>> = { input: new Map(), output: new Map() };
  for (const use of uses) raw(use, dialect, definitions[use.side]);
  const doubled = idsWithTwoReadings(definitions);

  function componentName(id: string, side: SchemaSide): string {
    return side === 'input' && doubled.has(id) ? `${id}Input` : id;
  }
  function rewrite(value: Json, side: SchemaSide): Json {
    return mapReferences(value, (id) => dialect.refPrefix + componentName(id, side));
  }

  return {
    /** Returns the schema of one of `uses`, with references into the components. */
    schema(use: SchemaUse): JsonObject {
      const found = rewrite(raw(use, dialect, definitions[use.side]), use.side);
      return isJsonObject(found) ? found : {};
    },
    /** Returns all shared shapes, by component name, sorted. */
    components(): Record<string, JsonObject> {
      const all = new Map<string, JsonObject>();
      for (const side of ['output', 'input'] as const) {
        for (const [id, definition] of definitions[side]) {
          const written = rewrite(definition, side);
          if (isJsonObject(written)) all.set(componentName(id, side), written);
        }
      }
      return Object.fromEntries([...all].sort(([a], [b]) => (a < b ? -1 : 1)));
    },
  };
}

/** Converts one schema to a separate document, with shared shapes under `$defs`. */
export function standaloneSchema({ schema, side }: SchemaUse): JsonObject {
  return JsonRecord.parse(z.toJSONSchema(schema, { io: side, override: (at) => sectionDefault(side, at) }));
}

/** Converts one schema and collects its shared shapes. The wrapper object makes zod write a reference even for a shared root. */
function raw(use: SchemaUse, dialect: SchemaDialect, into: Map<string, JsonObject>): Json {
  const document = JsonRecord.parse(
    z.toJSONSchema(z.strictObject({ value: use.schema }), {
      io: use.side,
      target: dialect.target,
      unrepresentable: 'throw',
      override: (at) => sectionDefault(use.side, at),
    }),
  );
  const shared = document['definitions'] ?? document['$defs'];
  for (const [id, definition] of Object.entries(isJsonObject(shared) ? shared : {})) {
    if (!isJsonObject(definition)) continue;
    const known = into.get(id);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(definition)) throw new Error(`Two different shapes have the id ${id}.`);
    into.set(id, definition);
  }
  const properties = document['properties'];
  return isJsonObject(properties) ? (properties['value'] ?? {}) : {};
}

function idsWithTwoReadings(definitions: Record<SchemaSide, Map<string, JsonObject>>): Set<string> {
  const doubled = new Set<string>();
  for (const [id, definition] of definitions.input) {
    const output = definitions.output.get(id);
    if (output !== undefined && JSON.stringify(output) !== JSON.stringify(definition)) doubled.add(id);
  }
  // A shape that refers to one with two forms also has two.
  for (let grown = true; grown;) {
    grown = false;
    for (const [id, definition] of definitions.input) {
      if (doubled.has(id) || !definitions.output.has(id)) continue;
      mapReferences(definition, (target) => {
        if (doubled.has(target)) grown = true;
        return target;
      });
      if (grown) {
        doubled.add(id);
        break;
      }
    }
  }
  return doubled;
}

/** Copies a schema, replacing each reference (`#/definitions/X`, `#/$defs/X`) by the text that `name` returns for X. */
function mapReferences(value: Json, name: (id: string) => string): Json {
  if (Array.isArray(value)) return value.map((item: Json) => mapReferences(item, name));
  if (!isJsonObject(value)) return value;
  const { allOf } = value;
  // zod wraps a bare reference in `allOf` for draft 7, where a reference must stand alone.
  if (Object.keys(value).length === 1 && Array.isArray(allOf) && allOf.length === 1) return mapReferences(allOf[0], name);
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (key !== '$ref' || typeof inner !== 'string') return [key, mapReferences(inner, name)];
      return [key, name(inner.slice(inner.lastIndexOf('/') + 1))];
    }),
  );
}
