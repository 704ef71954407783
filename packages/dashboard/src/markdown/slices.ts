/** Characters of a text that are drawn at once: a longer one would be a task that one notices. */
export const sliceLength = 6_000;

/**
 * Returns the end of the text to draw when its first `drawn` characters are: the whole text when little is left, otherwise the end of a paragraph in
 * the second half of the next slice. An answer that is written is ahead of `drawn` by half a slice at most, so that nothing drawn disappears.
 */
export function nextEnd(text: string, drawn: number): number {
  if (text.length - drawn <= sliceLength) return text.length;
  const latest = drawn + sliceLength;
  const between = text.lastIndexOf('\n\n', latest);
  return between > drawn + sliceLength / 2 ? between : latest;
}
