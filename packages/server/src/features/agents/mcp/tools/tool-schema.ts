import { cleanText } from './clean-text.ts';

const maxDepth = 24;
const maxNodes = 10_000;
export const maxSchemaCharacters = 65_536;

type Schema = Readonly<Record<string, unknown>>;
type Walk = { nodes: number; readonly root: Schema };
/** Returns the cleaned value of a keyword; undefined when it is omitted. */
type Read = (value: unknown, depth: number, walk: Walk) => unknown;

/** Providers accept only these characters in property names. */
const propertyName = /^[A-Za-z0-9_.-]{1,64}$/;
const typeNames: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);

const readText: Read = (value) => (typeof value === 'string' ? cleanText(value) : undefined);
const readFlag: Read = (value) => (typeof value === 'boolean' ? value : undefined);
const readNumber: Read = (value) => (typeof value === 'number' ? value : undefined);
const readCount: Read = (value) => (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined);
const readAny: Read = (value, depth, walk) => cleanValue(value, depth, walk);
const readList: Read = (value, depth, walk) => (Array.isArray(value) && value.length > 0 ? cleanValue(value, depth, walk) : undefined);
const readSchema: Read = (value, depth, walk) =>
  typeof value === 'boolean' ? value : isRecord(value) ? cleanKeywords(value, depth, walk) : undefined;
const readSchemas: Read = (value, depth, walk) =>
  Array.isArray(value) && value.length > 0 && value.every((each) => isRecord(each) || typeof each === 'boolean')
    ? value.map((each: unknown) => readSchema(each, depth + 1, walk))
    : undefined;
const readNamed: Read = (value, depth, walk) => {
  if (!isRecord(value)) return undefined;
  const named = Object.entries(value).flatMap(([name, each]) => {
    const schema = propertyName.test(name) ? readSchema(each, depth + 1, walk) : undefined;
    return schema === undefined ? [] : [[name, schema] as const];
  });
  return Object.fromEntries(named);
};
const readType: Read = (value) => {
  const types = Array.isArray(value) ? value : [value];
  return types.length > 0 && new Set(types).size === types.length && types.every((type) => typeNames.has(type)) ? value : undefined;
};
const readPattern: Read = (value) => {
  try {
    return typeof value === 'string' && new RegExp(value, 'u') instanceof RegExp ? value : undefined;
  } catch {
    return undefined;
  }
};
const readReference: Read = (value, _depth, { root }) => {
  if (value === '#') return value;
  const [, where = '', name = ''] = (typeof value === 'string' && /^#\/(\$defs|definitions|properties)\/([A-Za-z0-9_.-]{1,64})$/.exec(value)) || [];
  const group = root[where];
  return isRecord(group) && Object.hasOwn(group, name) ? value : undefined;
};

/** Keywords that are kept; all others only restrict what the server validates anyway. */
const keywords: ReadonlyMap<string, Read> = new Map([
  ...['title', 'description', 'format'].map((key) => [key, readText] as const),
  ...['uniqueItems', 'readOnly', 'writeOnly', 'deprecated'].map((key) => [key, readFlag] as const),
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'].map((key) => [key, readNumber] as const),
  ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'].map((key) => [key, readCount] as const),
  ...['default', 'const'].map((key) => [key, readAny] as const),
  ...['enum', 'examples'].map((key) => [key, readList] as const),
  ...['items', 'additionalProperties', 'not'].map((key) => [key, readSchema] as const),
  ...['anyOf', 'oneOf', 'allOf', 'prefixItems'].map((key) => [key, readSchemas] as const),
  ...['properties', '$defs', 'definitions'].map((key) => [key, readNamed] as const),
  ['multipleOf', (value) => (typeof value === 'number' && value > 0 ? value : undefined)],
  ['type', readType],
  ['pattern', readPattern],
  ['$ref', readReference],
  [
    'required',
    (value) => (Array.isArray(value) ? [...new Set(value.filter((name) => typeof name === 'string' && propertyName.test(name)))] : undefined),
  ],
]);
/** Some providers reject these at the top, where they expect one object. */
const choices = ['anyOf', 'oneOf', 'allOf'] as const;
const notAtTop: ReadonlySet<string> = new Set([...choices, 'not', 'enum', 'const', '$ref']);

/**
 * Returns the JSON schema of a tool's arguments as every provider accepts it, because one refuses a whole request for
 * the schema of one tool. Invalid and unknown parts of a schema are omitted; texts are stripped
 * of invisible characters. Undefined when it is not the schema of an object, or exceeds a limit.
 */
export function cleanSchema(schema: unknown): Schema | undefined {
  if (!isRecord(schema) || schema['type'] !== 'object') return undefined;
  const walk: Walk = { nodes: maxNodes, root: schema };
  const cleaned = cleanKeywords(schema, 0, walk);
  if (walk.nodes < 0) return undefined;
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(cleaned)) if (!notAtTop.has(key)) result[key] = value;
  const branches = choices.flatMap((key) => {
    const list = cleaned[key];
    return Array.isArray(list) ? list.filter(isRecord).map((branch) => ({ key, branch })) : [];
  });
  const parts = branches.map(({ branch }) => branch['properties']).filter(isRecord);
  if (parts.length > 0) result['properties'] = Object.assign({}, ...parts, cleaned['properties']);
  const required = [cleaned['required'], ...branches.map(({ key, branch }) => (key === 'allOf' ? branch['required'] : undefined))].flat();
  const names = [...new Set(required.filter((name) => name !== undefined))];
  if (names.length > 0) result['required'] = names;
  return JSON.stringify(result).length > maxSchemaCharacters ? undefined : result;
}

/** Once a limit is exceeded, the result is useless. */
function cleanKeywords(schema: Schema, depth: number, walk: Walk): Record<string, unknown> {
  walk.nodes = depth > maxDepth ? -1 : walk.nodes - 1;
  const cleaned: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (walk.nodes < 0) break;
    const read = keywords.get(key)?.(value, depth + 1, walk);
    if (read !== undefined) cleaned[key] = read;
  }
  return cleaned;
}

/** Data inside a schema. */
function cleanValue(value: unknown, depth: number, walk: Walk): unknown {
  walk.nodes = depth > maxDepth ? -1 : walk.nodes - 1;
  if (walk.nodes < 0) return undefined;
  if (typeof value === 'string') return cleanText(value);
  if (Array.isArray(value)) return value.map((each) => cleanValue(each, depth + 1, walk));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [cleanText(key), cleanValue(each, depth + 1, walk)]));
}

function isRecord(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
