declare const escaped: unique symbol;

/** The inside of a JSON string literal: escaped, without quotes. A separate type, so that plain text cannot be sent as one. */
export type JsonFragment = string & { readonly [escaped]: true };

export function toFragment(text: string): JsonFragment {
  return JSON.stringify(text).slice(1, -1) as JsonFragment;
}

/** Joins into a copy: the fragments may be slices of large texts, which can then be freed. */
export function joinFragments(fragments: readonly JsonFragment[]): JsonFragment {
  return fragments.join('') as JsonFragment;
}

/** Appends without a copy. */
export function append(text: JsonFragment, more: JsonFragment): JsonFragment {
  return (text + more) as JsonFragment;
}

export function textOf(fragment: JsonFragment): string {
  return String(JSON.parse(`"${fragment}"`));
}
