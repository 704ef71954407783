// Scripts without spaces are compared by the character.
const wordPattern = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]|[\p{L}\p{N}\p{M}]+/gu;

/** Splits text into comparable terms: lower case, compatibility forms folded, without punctuation. */
export function foldTerms(text: string): readonly string[] {
  return text.normalize('NFKC').toLowerCase().match(wordPattern) ?? [];
}

/** Returns how many terms two texts share, 0 to 1: the common terms over all terms of either. */
export function likeness(a: readonly string[], b: readonly string[]): number {
  const words = new Set(a);
  const others = new Set(b);
  if (words.size === 0 || others.size === 0) return words.size === others.size ? 1 : 0;
  let common = 0;
  for (const word of words) if (others.has(word)) common += 1;
  return common / (words.size + others.size - common);
}

/** Terms that two texts must share before their cosine counts: some embedders find all texts near. */
const leastShared = 0.4;

/**
 * Whether two texts say the same: by their terms, or by the cosine of their vectors when that is known and the terms
 * do not contradict it. Texts with different numbers never do.
 */
export function saysTheSame(a: readonly string[], b: readonly string[], cosine: number | undefined, threshold: number): boolean {
  const shared = likeness(a, b);
  if (shared === 1) return true;
  if (numbersOf(a) !== numbersOf(b)) return false;
  return shared >= threshold || (cosine !== undefined && cosine >= threshold && shared >= leastShared);
}

function numbersOf(words: readonly string[]): string {
  return words
    .filter((word) => /\p{N}/u.test(word))
    .toSorted()
    .join(' ');
}
