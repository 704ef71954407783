/** What a rule asks of a request, its path normalized; without either part it takes everything. */
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

/** Whether a rule wants what came to a path, as far as that alone says. */
export function wantsPath({ path }: Match, normalized: string): boolean {
  return path === undefined || path === normalized;
}

/** Whether a rule wants a payload of this `source`. */
export function wantsSource({ source }: Match, given: unknown): boolean {
  return source === undefined || source === given;
}
