/** A key whose value differs; a side is undefined where the key is not set. */
export interface ConfigChange {
  /** The key's path, joined with dots. */
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
}

type Fields = Readonly<Record<string, unknown>>;

/** Returns the keys that differ between two configurations by their full paths; lists are compared as a whole. */
export function configChanges(before: unknown, after: unknown, path = ''): readonly ConfigChange[] {
  if (isFields(before) && isFields(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return keys.flatMap((key) => configChanges(before[key], after[key], path === '' ? key : `${path}.${key}`));
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path, before, after }];
}

/** Returns the patch for `agents.update` that turns one configuration into the other: null for removed keys. */
export function configPatch(before: Fields, after: Fields): Record<string, unknown> {
  const patch: [string, unknown][] = [];
  for (const [key, value] of Object.entries(after)) {
    const old = before[key];
    if (isFields(old) && isFields(value)) {
      const inner = configPatch(old, value);
      if (Object.keys(inner).length > 0) patch.push([key, inner]);
    } else if (JSON.stringify(old) !== JSON.stringify(value)) patch.push([key, value]);
  }
  for (const key of Object.keys(before)) if (!(key in after)) patch.push([key, null]);
  return Object.fromEntries(patch);
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
