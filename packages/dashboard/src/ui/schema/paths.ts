/** Names of keys and indexes of list items, from the outermost inward. */
export type Path = readonly (string | number)[];

/** Formats a path as the server does in its messages: `gateway.tokens[0].scopes`. */
export function pathText(path: Path): string {
  return join(path, /^[\w$-]{1,64}$/);
}

/** Formats a path for a call, in which a name of digits must not read as an index. */
export function wirePath(path: Path): string {
  return join(path, /^[A-Za-z_$][\w$-]*$/);
}

function join(path: Path, plain: RegExp): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else if (text === '' || plain.test(part)) text += text === '' ? part : `.${part}`;
    else text += `[${JSON.stringify(part)}]`;
  }
  return text;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** True for equal values; those of a document that did not change are the same objects. */
export function isSame(value: unknown, other: unknown): boolean {
  return value === other || JSON.stringify(value) === JSON.stringify(other);
}

export function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((part, key) => (typeof part === 'object' && part !== null ? ownValue(part, key) : undefined), value);
}

function ownValue(part: object, key: string | number): unknown {
  return Object.hasOwn(part, key) ? Reflect.get(part, key) : undefined;
}

/** Returns a copy with another value at a path, or without one where `next` is undefined; everything next to the path stays the same object. */
export function withValueAt(value: unknown, path: Path, next: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return next;
  if (typeof key === 'number') {
    const list: readonly unknown[] = Array.isArray(value) ? value : [];
    const part = withValueAt(list[key], rest, next);
    return part === undefined ? list.toSpliced(key, 1) : list.toSpliced(key, 1, part);
  }
  const section = isRecord(value) ? value : {};
  const part = withValueAt(section[key], rest, next);
  if (part !== undefined) return { ...section, [key]: part };
  const { [key]: _, ...others } = section;
  return others;
}

/**
 * Returns a copy without the value at a path. Sections that the removal empties go with it, unless `base` has them or they are among the
 * first `keep` parts of the path.
 */
export function withoutValueAt(value: unknown, path: Path, base: unknown, keep: number): unknown {
  let current = withValueAt(value, path, undefined);
  for (let length = path.length - 1; length > keep; length--) {
    const section = path.slice(0, length);
    const rest = valueAt(current, section);
    if (!isRecord(rest) || Object.keys(rest).length > 0 || valueAt(base, section) !== undefined) break;
    current = withValueAt(current, section, undefined);
  }
  return current;
}
