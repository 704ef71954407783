/** One key whose value differs; a side is undefined where the key is not set. */
export interface ConfigChange {
  /** Names of the keys that lead there, with points between. */
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
}

type Fields = Readonly<Record<string, unknown>>;

/** Keys that differ between two configurations, deepest first known by their path; lists are compared whole. */
export function configChanges(before: unknown, after: unknown, path = ''): readonly ConfigChange[] {
  if (isFields(before) && isFields(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return keys.flatMap((key) => configChanges(before[key], after[key], path === '' ? key : `${path}.${key}`));
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path, before, after }];
}

/** What `agents.update` takes to come from one configuration to the other: null for keys that were taken out. */
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
