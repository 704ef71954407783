/** Returns the largest number up to `most` for which `fits` holds, when it holds for all smaller ones; 0 when for none. */
export function largest(most: number, fits: (count: number) => boolean): number {
  let low = 0;
  let tooMany = most + 1;
  // Doubled from below: what is far too long is never tried.
  for (let step = 1; low + step < tooMany; step *= 2) {
    if (fits(low + step)) low += step;
    else tooMany = low + step;
  }
  while (tooMany - low > 1) {
    const middle = (low + tooMany) >> 1;
    if (fits(middle)) low = middle;
    else tooMany = middle;
  }
  return low;
}

let segmenter: Intl.Segmenter | undefined;

/** Returns where to cut a text so that its head fits: at a space, else between characters as people see them, else between code points; 0 for nowhere. */
export function cutPoint(text: string, fits: (head: string) => boolean): number {
  const most = largest(text.length, (count) => fits(text.slice(0, count)));
  if (most === text.length || most === 0) return most;
  const space = Math.max(text.lastIndexOf(' ', most), text.lastIndexOf('\t', most));
  if (space > most / 2) return space;
  segmenter ??= new Intl.Segmenter();
  // A character that is longer than that is cut.
  const from = Math.max(0, most - 64);
  const whole = from + (segmenter.segment(text.slice(from, most + 64)).containing(most - from)?.index ?? 0);
  if (whole > from) return whole;
  return isLowSurrogate(text.charCodeAt(most)) ? most - 1 : most;
}

const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;
