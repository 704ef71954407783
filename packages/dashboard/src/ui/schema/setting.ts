import { t } from '../../language.ts';
import { type Path, pathText } from './paths.ts';
import { type FieldShape, type Lookup, type Schema, shapeOf } from './schema.ts';

/** A key of the configuration as its schema describes it. */
export interface Setting {
  readonly path: Path;
  /** The path as a text, as in messages of the server. */
  readonly id: string;
  readonly title: string;
  /** Unit of a number, from the end of its name. */
  readonly unit: string | undefined;
  readonly description: string | undefined;
  readonly schema: Schema;
  readonly shape: FieldShape;
  /** Whether a change takes effect at once. */
  readonly apply: string;
  readonly required: boolean;
  readonly secret: boolean;
  readonly default: unknown;
  /** Number of leading parts of the path that stay when the key is removed: those of an entry of a record, or of an item of a list. */
  readonly keep: number;
  /** True for an entry of a record or an item of a list, which exists even when it is empty. */
  readonly isEntry: boolean;
}

const secretName = /(?:token|secret|password|passphrase|api_?key|private_?key|authorization|cookie)$/i;

/** Describes the key at a path; `parent` passes on what holds for all keys below it. */
export function settingOf(
  path: Path,
  given: unknown,
  lookup: Lookup,
  parent?: Setting,
  facts: { readonly required?: boolean; readonly isEntry?: boolean } = {},
): Setting {
  const schema = lookup(given);
  const name = path.at(-1) ?? '';
  const shape = shapeOf(schema, lookup);
  const { title, unit } = facts.isEntry === true ? { title: String(name), unit: undefined } : titleOf(String(name));
  const apply = schema['x-gatehouse-apply'];
  return {
    path,
    id: pathText(path),
    title,
    unit: shape.kind === 'number' ? unit : undefined,
    description: typeof schema['description'] === 'string' ? schema['description'] : undefined,
    schema,
    shape,
    apply: typeof apply === 'string' ? apply : (parent?.apply ?? 'restart'),
    required: facts.required === true,
    secret: parent?.secret === true || schema['secret'] === true || (shape.kind === 'text' && secretName.test(String(name))),
    default: schema['default'],
    keep: parent === undefined ? 0 : parent.isEntry ? parent.path.length : parent.keep,
    isEntry: facts.isEntry === true,
  };
}

/** Returns the keys of a section; none for any other shape. */
export function childSettings(setting: Setting, lookup: Lookup): readonly Setting[] {
  if (setting.shape.kind !== 'object') return [];
  return setting.shape.fields.map(({ name, schema, required }) => settingOf([...setting.path, name], schema, lookup, setting, { required }));
}

/** Returns an entry of a record, or an item of a list. */
export function entrySetting(setting: Setting, key: string | number, lookup: Lookup): Setting {
  const { shape } = setting;
  const schema = shape.kind === 'record' ? shape.entry : shape.kind === 'items' ? shape.item : {};
  return settingOf([...setting.path, key], schema, lookup, setting, { isEntry: true });
}

/** Returns the value with which an entry begins. */
export function firstValue({ shape }: Setting): unknown {
  switch (shape.kind) {
    case 'object':
    case 'record':
      return {};
    case 'items':
    case 'lines':
    case 'choices':
      return [];
    case 'choice':
      return shape.options[0] ?? '';
    case 'boolean':
      return false;
    case 'number':
      return shape.min ?? 0;
    case 'text':
    case 'json':
      return '';
  }
}

const units: readonly (readonly [end: RegExp, unit: string])[] = [
  [/Ms$/, 'ms'],
  [/Mb$/, 'MiB'],
  [/Bytes$/, 'bytes'],
  [/Seconds$/, 's'],
];
const acronyms: Readonly<Record<string, string>> = {
  api: 'API',
  cors: 'CORS',
  cpu: 'CPU',
  dm: t('direct messages'),
  http: 'HTTP',
  id: 'ID',
  mb: 'MB',
  mcp: 'MCP',
  ok: 'OK',
  ssl: 'SSL',
  tls: 'TLS',
  ttl: 'TTL',
  url: 'URL',
  usd: 'USD',
};

/** Turns the name of a key into a title: `turnTimeoutMs` is "Turn timeout", in ms. */
export function titleOf(name: string): { readonly title: string; readonly unit: string | undefined } {
  const found = units.find(([end]) => end.test(name));
  const bare = found === undefined ? name : name.replace(found[0], '');
  const words = (bare === '' ? name : bare).split(/(?<=[a-z\d])(?=[A-Z])|[_-]/);
  const shown = words.map((word) => acronyms[word.toLowerCase()] ?? word.toLowerCase()).join(' ');
  return { title: shown.charAt(0).toUpperCase() + shown.slice(1), unit: found?.[1] };
}
