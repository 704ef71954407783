import { stem } from '../../../../kernel/stem.ts';

/** Consecutive words as stems; most terms are one word. */
export type Term = readonly string[];

export interface TextQuery {
  /** Words and phrases for the index, of letters and digits only; every one is required. */
  readonly phrases: readonly string[];
  /** The same terms for matching texts in memory. */
  readonly terms: readonly Term[];
}

export interface Word {
  /** Empty when it cannot match any term. */
  readonly stem: string;
  readonly start: number;
  readonly end: number;
}

/** One occurrence of a term. */
export interface Occurrence {
  readonly start: number;
  readonly end: number;
  /** Index of the term in the list. */
  readonly term: number;
}

const maxTerms = 16;
const wordPattern = /[\p{L}\p{N}\p{M}\p{Co}]+/gu;

/** Splits a text into words like the index: without case and accents, as stems. Stems only words that share a term's initial. */
function tokenize(text: string, initials: ReadonlySet<string | undefined>): Word[] {
  const words: Word[] = [];
  for (const { 0: word, index } of text.matchAll(wordPattern)) {
    const [first = ''] = word;
    const possible = first > '\x7f' || initials.has(first.toLowerCase());
    words.push({ stem: possible ? stem(fold(word)) : '', start: index, end: index + word.length });
  }
  return words;
}

const fold = (word: string) => word.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase();

/** Parses words and "quoted phrases"; nothing else has a meaning. Returns undefined when there are no words. */
export function parseTextQuery(query: string): TextQuery | undefined {
  const phrases: string[] = [];
  const terms: Term[] = [];
  for (const [part] of query.matchAll(/"[^"]*"|[^\s"]+/g)) {
    const words = part.match(wordPattern);
    if (words === null || terms.length === maxTerms) continue;
    phrases.push(words.join(' '));
    terms.push(words.map((word) => stem(fold(word))));
  }
  return terms.length === 0 ? undefined : { phrases, terms };
}

/** Returns a function that finds terms in many texts; `length` is the number of words of a text. */
export function createFinder(terms: readonly Term[]): (text: string) => { readonly found: readonly Occurrence[]; readonly length: number } {
  const initials = new Set(terms.flatMap((stems) => stems.map(([first]) => first)));
  return (text) => {
    const words = tokenize(text, initials);
    const found: Occurrence[] = [];
    for (const [at, { start, stem: begins }] of words.entries()) {
      if (begins === '') continue;
      for (const [term, stems] of terms.entries()) {
        const last = words[at + stems.length - 1];
        if (last !== undefined && stems.every((wanted, offset) => words[at + offset]?.stem === wanted)) found.push({ start, end: last.end, term });
      }
    }
    return { found, length: words.length };
  };
}
