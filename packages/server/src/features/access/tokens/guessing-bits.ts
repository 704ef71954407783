/** Kinds of characters, by how many a random secret of that kind draws from. */
const alphabets: readonly { readonly all: RegExp; readonly size: number }[] = [
  { all: /^\d*$/, size: 10 },
  { all: /^(?:[\da-f]*|[\dA-F]*)$/, size: 16 },
  { all: /^(?:[a-z]*|[A-Z]*)$/, size: 26 },
  { all: /^(?:[\da-z]*|[\dA-Z]*)$/, size: 36 },
  { all: /^[\dA-Za-z]*$/, size: 62 },
];
const anything = 90;
const separators = /[-_.:\s]/g;

/** A repeat shorter than this is chance. */
const leastRepeat = 4;

/**
 * Estimates how many bits an attacker has to guess: the alphabet of the secret per character, one bit for a
 * character that continues a run or a sequence (aaaa, 1234, dcba), and a few for a repeated part. An upper bound: words are
 * not looked up.
 */
export function guessingBits(secret: string): number {
  const text = secret.replaceAll(separators, '');
  const size = alphabets.find(({ all }) => all.test(text))?.size ?? anything;
  const perCharacter = Math.log2(size);
  let bits = 0;
  for (let at = 0; at < text.length;) {
    const repeat = repeatedLength(text, at);
    if (repeat >= leastRepeat) {
      bits += Math.log2(text.length) * 2;
      at += repeat;
    } else {
      bits += isPredictable(text, at) ? 1 : perCharacter;
      at += 1;
    }
  }
  return bits;
}

function repeatedLength(text: string, at: number): number {
  let length = 0;
  while (at + length < text.length && text.slice(0, at).includes(text.slice(at, at + length + 1))) length += 1;
  return length;
}

/** The fourth and later characters of a sequence: three can be chance. */
function isPredictable(text: string, at: number): boolean {
  if (at < 3) return false;
  const step = (index: number) => text.charCodeAt(index) - text.charCodeAt(index - 1);
  return Math.abs(step(at)) <= 1 && step(at) === step(at - 1) && step(at) === step(at - 2);
}
