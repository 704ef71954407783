import type { ClientFile, Values } from './client.ts';
import { isOwn, isValues, mergeValues, ShapeError } from './merge-values.ts';

/** Merges the client's values into the text of a configuration file; throws `ShapeError` if that is impossible. */
export async function mergeFile(text: string, { format, values, initial = {} }: ClientFile): Promise<string> {
  const wanted = text.trim() === '' ? { ...initial, ...values } : values;
  if (format === 'json') return mergeJson(text, wanted);
  if (format === 'yaml') return mergeYaml(text, wanted);
  const { mergeToml } = await import('./merge-toml.ts');
  return mergeToml(text, wanted);
}

function mergeJson(text: string, wanted: Values): string {
  return `${JSON.stringify(mergeValues(readJson(text), wanted), undefined, 2)}\n`;
}

type Revive = (key: string, value: unknown, context?: { readonly source?: string }) => unknown;

// Missing from the type library: the source text of a value, and raw numbers in output.
const json: { readonly parse: (text: string, revive: Revive) => unknown; readonly rawJSON?: (source: string) => unknown } = JSON;

/** Keeps numbers as written: those above 2^53 or with many digits would change. */
function parseExact(text: string): unknown {
  return json.parse(text, (_key, value, context) =>
    typeof value === 'number' && context?.source !== undefined && JSON.stringify(value) !== context.source
      ? (json.rawJSON?.(context.source) ?? value)
      : value,
  );
}

function readJson(text: string): Values {
  if (text.trim() === '') return {};
  let value: unknown;
  try {
    value = parseExact(text);
  } catch {
    throw new ShapeError('it is not plain JSON; comments and trailing commas would be lost');
  }
  if (!isValues(value)) throw new ShapeError('it is not a JSON object');
  return value;
}

/** Edits the YAML document in place, so that comments and anchors stay. */
async function mergeYaml(text: string, wanted: Values): Promise<string> {
  const { isSeq, parseDocument } = await import('../commands/yaml.ts');
  const document = parseDocument(text, { intAsBigInt: true });
  const [problem] = document.errors;
  if (problem !== undefined) throw new ShapeError(`it is not valid YAML (${problem.message.split('\n')[0] ?? ''})`);
  try {
    const before: unknown = document.toJS() ?? {};
    if (!isValues(before)) throw new ShapeError('it is not a map');
    mergeValues(before, wanted);
    for (const [key, value] of Object.entries(wanted)) {
      const node = document.get(key);
      if (!Array.isArray(value) || !isSeq(node)) document.set(key, document.createNode(value));
      else node.items = [...value.map((item) => document.createNode(item)), ...node.items.filter((item) => !isOwn(toJs(item, document)))];
    }
    return document.toString();
  } catch (error) {
    if (!(error instanceof Error) || !/unresolved alias/i.test(error.message)) throw error;
    throw new ShapeError('an alias (*name) in it has no anchor, or refers to an entry that is replaced; write the values in full instead');
  }
}

function toJs(item: unknown, document: object): unknown {
  const convert: unknown = item !== null && typeof item === 'object' && 'toJS' in item ? item.toJS : undefined;
  return typeof convert === 'function' ? convert.call(item, document) : item;
}
