const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';
const longId = new RegExp(`^(\\W*)([a-z]+_|root-[a-z]+-)(${uuid})$`);
const longReference = /^(cv_)([\w-]{43})$/;
const shortForm = /^(?:[a-z]+_[0-9a-f]{8}|root-[a-z]+-[0-9a-f]{8}|cv_[\w-]{8})$/;

/**
 * Shortens an id for people: the prefix with the last digits, because ids begin with their time; of a reference the first
 * characters. Other text stays as it is.
 */
export function shortId(text: string): string {
  const [, tree, prefix, id] = longId.exec(text) ?? [];
  if (tree !== undefined && prefix !== undefined && id !== undefined) return tree + prefix + id.slice(-8);
  return longReference.test(text) ? text.slice(0, 11) : text;
}

export function isShortId(text: string): boolean {
  return shortForm.test(text);
}

/** Returns the ids within a value that have this short form. */
export function idsIn(value: unknown, short: string): Set<string> {
  const found = new Set<string>();
  const search = (part: unknown): void => {
    if (typeof part === 'string') {
      if (part !== short && shortId(part) === short) found.add(part);
    } else if (typeof part === 'object' && part !== null) for (const inner of Object.values(part)) search(inner);
  };
  search(value);
  return found;
}
