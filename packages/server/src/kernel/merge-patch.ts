type Json = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Objects merge, others replace, `null` stays as a mark (see `withoutNulls`). `__proto__` is dropped: setting it would change the object. */
export function mergePatch(base: Json, patch: Json): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(patch)) {
    if (key === '__proto__') continue;
    const old = Object.hasOwn(merged, key) ? merged[key] : undefined;
    merged[key] = isObject(value) ? mergePatch(isObject(old) ? old : {}, value) : value;
  }
  return merged;
}

/** Removes the keys that a patch reset to their default. */
export function withoutNulls(value: Json): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== null)
      .map(([key, inner]) => [key, isObject(inner) ? withoutNulls(inner) : inner]),
  );
}
