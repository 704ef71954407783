import { dotted, type Path } from './config-error.ts';
import { readDocument } from './document.ts';
import { nextSplice } from './splice.ts';

/** One change of a document: a value for a path, or its removal. A list takes an index, the length to append, or the `id` of an item. */
export type Edit = { readonly set: Path; readonly value: unknown } | { readonly unset: Path };

/** A change that the document cannot take; `message` says what to do, and never quotes the document, which may hold secrets. */
export class EditError extends Error {
  override readonly name = 'EditError';
  readonly path: Path;

  constructor(path: Path, message: string) {
    super(path.length === 0 ? message : `${dotted(path)}: ${message}`);
    this.path = path;
  }
}

/** Number of splices after which a section is replaced as a whole: each costs a parse. */
const finestSplices = 64;
const mostSplices = 512;

/**
 * Returns the YAML text with some values changed. Only the characters of what changes are replaced, so that comments, order, quoting,
 * anchors and line ends of everything else stay; a section or list that is set keeps the parts that stay the same. Fails with an
 * EditError instead of a text that would change anything else.
 */
export function editDocument(text: string, edits: readonly Edit[]): string {
  const mark = text.startsWith('\uFEFF') ? '\uFEFF' : '';
  let current = text.slice(mark.length);
  for (const edit of edits) current = applyEdit(current, edit);
  return mark + current;
}

/** Returns the plain value of a document whose references are not resolved. Fails with an EditError where it cannot be parsed. */
export function documentValue(text: string): unknown {
  const { document, problems } = readDocument('document', text.replace(/^\uFEFF/, ''), (part) => part);
  if (document === undefined || problems.length > 0) {
    const [first] = problems;
    throw new EditError([], `the document cannot be edited: line ${first?.line ?? 1}: ${first?.message ?? 'not valid YAML'}`);
  }
  return document.value ?? Object.create(null);
}

function applyEdit(text: string, edit: Edit): string {
  const path = 'set' in edit ? edit.set : edit.unset;
  const wanted = editValue(documentValue(text), path, 'set' in edit ? { value: plain(edit.value) } : undefined, path);
  let current = text;
  for (let count = 0; count < mostSplices; count++) {
    const splice = nextSplice(current, wanted, count < finestSplices ? Number.POSITIVE_INFINITY : 1);
    if (splice === undefined) return checked(current, wanted, path);
    const next = current.slice(0, splice.from) + splice.text + current.slice(splice.to);
    if (next === current) break;
    current = next;
  }
  throw new EditError(path, handWork);
}

const handWork = 'cannot be changed without changing other parts of the document (an anchor, a tag or an unusual layout); edit the file by hand';

function checked(text: string, wanted: unknown, path: Path): string {
  let found: unknown;
  try {
    found = documentValue(text);
  } catch {
    throw new EditError(path, handWork);
  }
  if (canonical(found) !== canonical(wanted)) throw new EditError(path, handWork);
  return text;
}

/** Returns a text that is equal for equal values, in whatever order their keys are. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    isRecord(part)
      ? Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1))
      : typeof part === 'number' && !Number.isFinite(part)
        ? String(part)
        : part,
  );
}

/** Returns a copy without undefined and prototypes: what JSON, and so a client, can say. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => plain(item) ?? null);
  if (!isRecord(value)) return value;
  const copy = emptyRecord();
  for (const [key, part] of Object.entries(value)) if (part !== undefined) copy[key] = plain(part);
  return copy;
}

/** Returns a copy of `value` with the part at `path` replaced, or removed where there is no replacement. */
function editValue(value: unknown, path: Path, replacement: { readonly value: unknown } | undefined, whole: Path): unknown {
  const [part, ...rest] = path;
  if (part === undefined) return replacement === undefined ? emptyRecord() : replacement.value;
  if (Array.isArray(value)) return editList(value, part, rest, replacement, whole);
  if (value !== null && value !== undefined && !isRecord(value))
    throw new EditError(whole.slice(0, whole.length - path.length), 'holds a single value, not a section');
  if (typeof part === 'number') {
    if (value !== null && value !== undefined && Object.keys(value).length > 0)
      throw new EditError(whole.slice(0, whole.length - path.length), 'is a section, not a list');
    return editList([], part, rest, replacement, whole);
  }
  const copy = Object.assign(emptyRecord(), value);
  if (replacement === undefined && rest.length === 0) {
    delete copy[part];
    return copy;
  }
  if (replacement === undefined && !Object.hasOwn(copy, part)) return value;
  copy[part] = editValue(copy[part], rest, replacement, whole);
  return copy;
}

function editList(
  list: readonly unknown[],
  part: string | number,
  rest: Path,
  replacement: { readonly value: unknown } | undefined,
  whole: Path,
): unknown[] {
  const index = typeof part === 'number' ? part : list.findIndex((item) => isRecord(item) && item['id'] === part);
  const isNew = index === list.length && replacement !== undefined;
  if (!isNew && (index < 0 || index >= list.length))
    throw new EditError(
      whole,
      typeof part === 'number'
        ? `the list has ${list.length} items; expected an index below that, or that to append`
        : 'no item of the list has this id',
    );
  if (replacement === undefined && rest.length === 0) return list.toSpliced(index, 1);
  return list.toSpliced(index, isNew ? 0 : 1, editValue(list[index], rest, replacement, whole));
}

function emptyRecord(): Record<string, unknown> {
  return Object.create(null);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
