import { isDeepStrictEqual } from 'node:util';
import { isJsonObject, type Json, type JsonObject, type OpenRpcDocument, schemaRows, type SchemaRow, typeText } from '@gatehouse/contract';
import { renderColumns, renderTable } from '../render/table.ts';
import { findFlag } from './flag-path.ts';
import { isSwitch, readFlagValue } from './flag-value.ts';
import { kebab, type MethodShape } from './method-shape.ts';

/** Returns the text of `gatehouse call METHOD --help`. */
export function methodHelp(shape: MethodShape): string {
  const { method } = shape;
  const blocks = [
    `gatehouse call ${method.name}${method.params.length === 0 ? '' : ' [--json OBJECT] [--NAME VALUE …]'}`,
    [method.summary, ...(method.description === undefined ? [] : [method.description])].join('\n'),
    `Scope ${method['x-scope']}, ${riskText[method['x-risk']] ?? method['x-risk']}.`,
    parameterBlock(shape),
    ['Result:', indent(resultLines(shape))].join('\n'),
    [
      'Examples:',
      ...method.examples.map((example) => `  ${exampleLine(shape, Object.fromEntries(example.params.map(({ name, value }) => [name, value])))}`),
    ].join('\n'),
  ];
  return blocks.join('\n\n');
}

const riskText: Record<string, string> = { read: 'only reads', mutate: 'changes state', destructive: 'destroys or exposes' };

function parameterBlock(shape: MethodShape): string {
  if (shape.method.params.length === 0) return 'No parameters.';
  const required = new Set(shape.method.params.filter((param) => param.required === true).map((param) => param.name));
  const rows = schemaRows({ ...shape.params, required: [...required] }, { lookup: shape.lookup, openReferences: true }).filter(
    (row) => !row.path.includes('[]'),
  );
  return [
    'Parameters:',
    indent(renderColumns(rows.map((row) => [`--${row.path.split('.').map(kebab).join('.')}`, valueText(row, shape), note(row)]))),
  ].join('\n');
}

function valueText({ schema }: SchemaRow, { lookup }: MethodShape): string {
  const spelledOut = (name: string): string => typeText(lookup(name) ?? {}, spelledOut);
  return typeText(schema, spelledOut);
}

function note({ schema, required, path, onlyWith }: SchemaRow): string {
  const description = typeof schema['description'] === 'string' ? schema['description'] : '';
  const isTop = !path.includes('.');
  return [
    required && isTop ? '(required)' : '',
    onlyWith === undefined ? '' : `(with ${onlyWith})`,
    'default' in schema ? `(default ${JSON.stringify(schema['default'])})` : '',
    schema['type'] === 'array' ? '(may be repeated)' : '',
    description,
  ]
    .filter((text) => text !== '')
    .join(' ');
}

function resultLines(shape: MethodShape): string {
  const { method, lookup } = shape;
  const { anyOf } = method.result.schema;
  const forms: readonly JsonObject[] = Array.isArray(anyOf) ? anyOf.filter(isJsonObject) : [method.result.schema];
  const texts = forms.map((form) =>
    renderColumns(
      schemaRows(form, { lookup, openReferences: true }).map((row) => [
        row.path,
        valueText(row, shape),
        [row.required ? '' : '(optional)', row.onlyWith === undefined ? '' : `(with ${row.onlyWith})`].filter((text) => text !== '').join(' '),
      ]),
    ),
  );
  return texts.map((text) => (text === '' ? 'object' : text)).join('\nor\n');
}

function indent(text: string): string {
  return text
    .split('\n')
    .map((line) => (line === '' ? line : `  ${line}`))
    .join('\n');
}

/** Returns the example as a command line. */
function exampleLine(shape: MethodShape, params: JsonObject): string {
  return ['gatehouse call', shape.method.name, ...flagsOfExample(shape, params).map(quote)].join(' ');
}

/** Returns the arguments that set these parameters, with `--json` where flags can't express them; the inverse of `parseCall`. */
export function flagsOfExample(shape: MethodShape, params: JsonObject): string[] {
  const args = Object.entries(params).map(([key, value]) => argsOf(shape, '', key, value));
  return args.some((one) => one === undefined) ? ['--json', JSON.stringify(params)] : args.flatMap((one) => one ?? []);
}

/** Returns the arguments of one value; undefined when flags can't express it and the caller must write JSON. */
function argsOf(shape: MethodShape, prefix: string, key: string, value: Json): string[] | undefined {
  const name = spelling(shape, prefix, key);
  if (name === undefined) return undefined;
  if (isJsonObject(value) && Object.keys(value).length > 0) {
    const parts = Object.entries(value).map(([part, inner]) => argsOf(shape, `${name}.`, part, inner));
    if (!parts.includes(undefined)) return parts.flatMap((one) => one ?? []);
  }
  if (isTextList(value)) return value.flatMap((item) => [`--${name}`, item]);
  const { schema } = findFlag(name, shape);
  if (value === true && isSwitch(schema, shape.lookup)) return [`--${name}`];
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (!readsBack(name, text, value, shape)) return undefined;
  return text.startsWith('--') ? [`--${name}=${text}`] : [`--${name}`, text];
}

function readsBack(name: string, text: string, value: Json, shape: MethodShape): boolean {
  try {
    return isDeepStrictEqual(readFlagValue(name, text, findFlag(name, shape).schema, shape.lookup), value);
  } catch {
    return false;
  }
}

/** Returns the kebab-case spelling of a declared name; keys of maps stay as written. Undefined when there is no such flag. */
function spelling(shape: MethodShape, prefix: string, key: string): string | undefined {
  try {
    return prefix + (findFlag(prefix + kebab(key), shape).path.at(-1) === key ? kebab(key) : key);
  } catch {
    return undefined;
  }
}

function isTextList(value: Json): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string');
}

function quote(text: string): string {
  return /^[\w./:@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Returns the text of `gatehouse call --list`. */
export function methodList({ methods }: OpenRpcDocument): string {
  return renderTable(
    ['Method', 'Scope', 'Risk', 'What it does'],
    methods.map((one) => [one.name, one['x-scope'], one['x-risk'], one.summary]),
  );
}
