import { isJsonObject, type JsonObject, schemaRows } from '@gatehouse/contract';
import { usageError } from '../failure.ts';
import { nearest } from '../nearest.ts';
import { alternativesOf, kebab, type MethodShape } from './method-shape.ts';

/** The parameter that a flag sets, with its schema. */
export interface FlagTarget {
  readonly path: readonly string[];
  readonly schema: JsonObject;
}

const anything: JsonObject = {};

/** Resolves a flag such as `session-key.user-id` to a parameter; accepts both spellings of a name, `agent-id` and `agentId`. */
export function findFlag(flag: string, { params, lookup, method }: MethodShape): FlagTarget {
  let schema = params;
  const path: string[] = [];
  for (const segment of flag.split('.')) {
    const next = step(schema, segment, lookup);
    if (next === undefined) throw unknownFlag(flag, { params, lookup, method });
    path.push(next.name);
    schema = next.schema;
  }
  return { path, schema };
}

function step(schema: JsonObject, segment: string, lookup: MethodShape['lookup']): { name: string; schema: JsonObject } | undefined {
  for (const choice of alternativesOf(schema, lookup)) {
    const properties = isJsonObject(choice['properties']) ? choice['properties'] : {};
    const name = Object.keys(properties).find((key) => key === segment || kebab(key) === segment);
    const property = name === undefined ? undefined : properties[name];
    if (name !== undefined && isJsonObject(property)) return { name, schema: property };
    // A map, or an object with additional keys: the segment is the key as written.
    const further = choice['additionalProperties'];
    if (isJsonObject(further)) return { name: segment, schema: further };
    if (Object.keys(choice).length === 0 || (choice['type'] === 'object' && further !== false)) return { name: segment, schema: anything };
  }
  return undefined;
}

/** Lists all flags of a method for its help. */
export function flagNames({ params, lookup }: MethodShape): string[] {
  return schemaRows(params, { lookup, openReferences: true })
    .map((row) => row.path)
    .filter((path) => !path.includes('[]'))
    .map((path) => path.split('.').map(kebab).join('.'));
}

function unknownFlag(flag: string, shape: MethodShape) {
  const known = flagNames(shape);
  const likely = nearest(flag, known);
  const hint =
    known.length === 0 ? `${shape.method.name} takes no parameters.` : `\`gatehouse call ${shape.method.name} --help\` shows its parameters.`;
  return usageError(`${shape.method.name} has no parameter --${flag}.`, likely === undefined ? hint : `Did you mean --${likely}? ${hint}`);
}
