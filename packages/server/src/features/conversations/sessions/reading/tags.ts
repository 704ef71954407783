/** Tags as the column `tags` keeps them: a text that contains `\ntag\n` has the tag. */
export function encodeTags(tags: readonly string[]): string {
  const sorted = [...new Set(tags)].toSorted((a, b) => (a < b ? -1 : 1));
  return sorted.map((tag) => `\n${tag}\n`).join('');
}

/** The inverse. */
export const decodeTags = (text: string): string[] => text.split('\n').filter((tag) => tag !== '');
