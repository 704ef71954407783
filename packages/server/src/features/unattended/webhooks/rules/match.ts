/** Conditions of a rule, with a normalized path; without conditions it matches everything. */
export interface Match {
  readonly path?: string | undefined;
  readonly source?: string | undefined;
}

/**
 * Trims slashes, lowers the case (http-gateway.md §4.8, rule 1) and decodes percent-encoded unreserved characters, which
 * mean the same either way (RFC 3986 §6.2.2.2). Slashes are trimmed first, so that none can come out of an encoding.
 */
export function normalizePath(path: string): string {
  return path
    .replace(/^\/+|\/+$/g, '')
    .replace(/%[2-7][0-9a-f]/gi, (encoded) => {
      const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
      return /[\w.~-]/.test(character) ? character : encoded;
    })
    .toLowerCase();
}

/** Returns whether the path matches a rule. */
export function wantsPath({ path }: Match, normalized: string): boolean {
  return path === undefined || path === normalized;
}

/** Returns whether the `source` of a payload matches a rule. */
export function wantsSource({ source }: Match, given: unknown): boolean {
  return source === undefined || source === given;
}
