import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { dotted, type Path, readPath } from '../../../kernel/config/config-error.ts';
import { documentValue, type Edit, EditError } from '../../../kernel/config/edit.ts';
import { asSchemaWants } from '../../../kernel/config/load.ts';
import { redactedConfig, redactedDocument } from '../../../kernel/config/redacted.ts';
import { bare, schemaAt } from '../../../kernel/config/schema-walk.ts';
import { parseJson } from '../../../kernel/json.ts';
import { mergePatch, withoutNulls } from '../../../kernel/merge-patch.ts';

/** Returns the path that parameters name: `section` with or without `key`, or `path`. */
export function pathOf({
  section,
  key,
  path,
}: {
  readonly section?: string | undefined;
  readonly key?: string | undefined;
  readonly path?: string | undefined;
}): Path {
  if ((section === undefined) === (path === undefined)) throw new AppError('invalid_params', 'Expected either section or path', { param: 'section' });
  if (path !== undefined && key !== undefined) throw new AppError('invalid_params', 'key goes with section, not with path', { param: 'key' });
  const below = path ?? key;
  const parts = below === undefined ? [] : readPath(below);
  if (parts === undefined)
    throw new AppError('invalid_params', 'Expected names with dots between them, such as tokens[0].scopes; a name with a dot as ["a.b"]', {
      param: path === undefined ? 'key' : 'path',
    });
  return section === undefined ? parts : [section, ...parts];
}

/** Refuses a value that was read with its secrets hidden: writing it would destroy them. */
export function refuseMarkers(value: unknown, path: Path): void {
  if (typeof value === 'string' && value.includes('[REDACTED'))
    throw new AppError('invalid_params', `${dotted(path)} holds the redaction marker; leave the key out to keep its value, or write "\${NAME}"`, {
      param: dotted(path),
    });
  if (typeof value !== 'object' || value === null) return;
  for (const [key, part] of Object.entries(value)) refuseMarkers(part, [...path, Array.isArray(value) ? Number(key) : key]);
}

/** Returns the edits that merge a value into the document at a path: objects merge, null removes, everything else replaces. */
export function mergeEdits(text: string, path: Path, value: unknown): Edit[] {
  if (value === null) return [{ unset: path }];
  if (!isSection(value)) return [{ set: path, value }];
  const present = valueAt(documentValue(text), path);
  return [{ set: path, value: withoutNulls(mergePatch(isSection(present) ? present : {}, value)) }];
}

/** Converts a text to what the schema has at a path: a number, a switch, or JSON for a list or section. */
export function coerced(schema: z.ZodObject, path: Path, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  const wanted = schemaAt(schema, path);
  const thing = wanted === undefined ? undefined : bare(wanted);
  if ((thing instanceof z.ZodArray || thing instanceof z.ZodObject || thing instanceof z.ZodRecord) && /^\s*[[{]/.test(value))
    return parseJson(value);
  return asSchemaWants(schema, path, value);
}

/** Returns the value of the document at a path, redacted; undefined when it has none. */
export function shownAt(schema: z.ZodObject, text: string, path: Path, redactText: (text: string) => string): unknown {
  const value = valueAt(documentValue(text), path);
  if (value === undefined) return undefined;
  const nested = path.toReversed().reduce<unknown>((part, key) => ({ [key]: part }), value);
  const shown = redactedConfig(schema, nested, redactText);
  return path.reduce<unknown>((part, key) => (typeof part === 'object' && part !== null ? Reflect.get(part, key) : undefined), shown);
}

/** Returns what a document says, with its references, and its secrets redacted; undefined for one that is not valid YAML. */
export function writtenValue(schema: z.ZodObject, text: string, redactText: (text: string) => string): Record<string, unknown> | undefined {
  try {
    const shown = redactedDocument(schema, documentValue(text), redactText);
    return isSection(shown) ? shown : undefined;
  } catch (error) {
    if (error instanceof EditError) return undefined;
    throw error;
  }
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((part, key) => {
    if (Array.isArray(part)) return typeof key === 'number' ? part[key] : part.find((item) => isSection(item) && item['id'] === key);
    return isSection(part) && Object.hasOwn(part, key) ? part[key] : undefined;
  }, value);
}

function isSection(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
