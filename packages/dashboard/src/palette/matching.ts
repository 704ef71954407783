/** What a query is compared with. */
export interface Matched {
  readonly label: string;
  readonly hint?: string | undefined;
  /** A text that is compared, but not shown, as the description of a setting. */
  readonly about?: string | undefined;
}

/** Returns the entries that have all terms of a query; those that have them in what is shown come first. */
export function matching<T extends Matched>(entries: readonly T[], query: string): readonly T[] {
  const terms = query.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const hasAll = (text: string): boolean => terms.every((term) => text.toLocaleLowerCase().includes(term));
  const shown = entries.filter(({ label, hint = '' }) => hasAll(`${label} ${hint}`));
  const named = new Set(shown);
  const described = entries.filter(
    (entry) => entry.about !== undefined && !named.has(entry) && hasAll(`${entry.label} ${entry.hint ?? ''} ${entry.about}`),
  );
  return [...shown, ...described];
}
