/**
 * Returns the stem of a folded English word by Porter's algorithm, as SQLite's tokenizer `porter` computes it: what the
 * index found must be found again in the text. Words of other languages mostly stay unchanged.
 */
export function stem(word: string): string {
  const bytes = Buffer.byteLength(word);
  if (bytes < 3 || bytes > 64) return word;
  let w = word;
  // 1a
  if (w.endsWith('s')) {
    if (/(?:ss|i)es$/.test(w)) w = w.slice(0, -2);
    else if (!w.endsWith('ss')) w = w.slice(0, -1);
  }
  // 1b
  if (w.endsWith('eed')) {
    if (measure(w.slice(0, -3)) > 0) w = w.slice(0, -1);
  } else {
    const inflected = /^(.+)(?:ed|ing)$/.exec(w)?.[1];
    if (inflected !== undefined && hasVowel(inflected)) w = repair(inflected);
  }
  // 1c
  if (w.endsWith('y') && hasVowel(w.slice(0, -1))) w = `${w.slice(0, -1)}i`;
  w = replaceSuffix(w, second, 0);
  w = replaceSuffix(w, third, 0);
  w = replaceSuffix(w, fourth, 1);
  // 5
  if (w.endsWith('e')) {
    const rest = w.slice(0, -1);
    const m = measure(rest);
    if (m > 1 || (m === 1 && !endsShort(rest))) w = rest;
  }
  if (w.endsWith('ll') && measure(w.slice(0, -1)) > 1) w = w.slice(0, -1);
  return w;
}

interface Suffixes {
  readonly pattern: RegExp;
  readonly replacement: (suffix: string) => string;
}

/** The shortest possible start leaves the longest suffix, and only that one is examined. */
const endingIn = (suffixes: Iterable<string>) => new RegExp(`^(.+?)(${[...suffixes].join('|')})$`);

const table = (rows: Readonly<Record<string, string>>): Suffixes => ({
  pattern: endingIn(Object.keys(rows)),
  replacement: (suffix) => rows[suffix] ?? '',
});

const second = table({
  ational: 'ate',
  tional: 'tion',
  enci: 'ence',
  anci: 'ance',
  izer: 'ize',
  logi: 'log',
  bli: 'ble',
  alli: 'al',
  entli: 'ent',
  eli: 'e',
  ousli: 'ous',
  ization: 'ize',
  ation: 'ate',
  ator: 'ate',
  alism: 'al',
  iveness: 'ive',
  fulness: 'ful',
  ousness: 'ous',
  aliti: 'al',
  iviti: 'ive',
  biliti: 'ble',
});
const third = table({ icate: 'ic', ative: '', alize: 'al', iciti: 'ic', ical: 'ic', ful: '', ness: '' });
const fourth: Suffixes = {
  pattern: endingIn([
    'al',
    'ance',
    'ence',
    'er',
    'ic',
    'able',
    'ible',
    'ant',
    'ement',
    'ment',
    'ent',
    '(?<=[st])ion',
    'ou',
    'ism',
    'ate',
    'iti',
    'ous',
    'ive',
    'ize',
  ]),
  replacement: () => '',
};

function replaceSuffix(word: string, { pattern, replacement }: Suffixes, above: number): string {
  const [, rest, suffix] = pattern.exec(word) ?? [];
  return rest !== undefined && suffix !== undefined && measure(rest) > above ? rest + replacement(suffix) : word;
}

/** Repairs a word after `ed` or `ing` was removed. */
function repair(rest: string): string {
  if (/(?:at|bl|iz)$/.test(rest)) return `${rest}e`;
  if (/([^aeiou])\1$/.test(rest) && !/[lsz]$/.test(rest)) return rest.slice(0, -1);
  return measure(rest) === 1 && endsShort(rest) ? `${rest}e` : rest;
}

/** `c` for each consonant and `v` for each vowel; `y` is a vowel after a consonant. */
function shapeOf(word: string): string {
  let shape = '';
  for (const letter of word) shape += 'aeiou'.includes(letter) || (letter === 'y' && shape.endsWith('c')) ? 'v' : 'c';
  return shape;
}

/** How often consonants follow vowels. */
const measure = (word: string) => shapeOf(word).match(/vc/g)?.length ?? 0;
const hasVowel = (word: string) => shapeOf(word).includes('v');
/** Consonant, vowel, consonant other than w, x and y. */
const endsShort = (word: string) => shapeOf(word).endsWith('cvc') && !/[wxy]$/.test(word);
