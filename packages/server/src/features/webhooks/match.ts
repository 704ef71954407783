/** What a rule asks of a request, its path normalized; without either part it takes everything. */
export interface Match {
  readonly path?: string | undefined;
  readonly source?: string | undefined;
}

/** Trims slashes and lowers the case (http-gateway.md §4.8, rule 1). */
export function normalizePath(path: string): string {
  return path.replace(/^\/+|\/+$/g, '').toLowerCase();
}

/** Whether a rule wants what came to a path, as far as that alone says. */
export function wantsPath({ path }: Match, normalized: string): boolean {
  return path === undefined || path === normalized;
}

/** Whether a rule wants a payload of this `source`. */
export function wantsSource({ source }: Match, given: unknown): boolean {
  return source === undefined || source === given;
}
