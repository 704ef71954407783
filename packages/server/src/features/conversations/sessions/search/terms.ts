import { stem } from '../../../../kernel/stem.ts';

/** Words that must follow each other, as stems; most terms are one word. */
export type Term = readonly string[];

export interface TextQuery {
  /** For the index: every term must occur. */
  readonly match: string;
  /** The same for a text that is at hand. */
  readonly terms: readonly Term[];
}

export interface Word {
  /** Empty when no term could be meant. */
  readonly stem: string;
  readonly start: number;
  readonly end: number;
}

/** A place where a term stands. */
export interface Occurrence {
  readonly start: number;
  readonly end: number;
  /** Its index in the list of terms. */
  readonly term: number;
}

const maxTerms = 16;
const wordPattern = /[\p{L}\p{N}\p{M}\p{Co}]+/gu;

/** Words of a text as the index sees them: without case and accents, as stems. Stems are only made of words that begin as a term does. */
function wordsOf(text: string, initials: ReadonlySet<string | undefined>): Word[] {
  const words: Word[] = [];
  for (const { 0: word, index } of text.matchAll(wordPattern)) {
    const [first = ''] = word;
    const possible = first > '\x7f' || initials.has(first.toLowerCase());
    words.push({ stem: possible ? stem(fold(word)) : '', start: index, end: index + word.length });
  }
  return words;
}

const fold = (word: string) => word.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase();

/** Words, and "several in quotes" that must follow each other; nothing else has a meaning. Undefined when there is no word in it. */
export function parseTextQuery(query: string): TextQuery | undefined {
  const match: string[] = [];
  const terms: Term[] = [];
  for (const [piece] of query.matchAll(/"[^"]*"|[^\s"]+/g)) {
    const words = piece.match(wordPattern);
    if (words === null || terms.length === maxTerms) continue;
    // Letters and digits in quotes: nothing of the index's query language can be in there.
    match.push(`body : "${words.join(' ')}"`);
    terms.push(words.map((word) => stem(fold(word))));
  }
  return terms.length === 0 ? undefined : { match: match.join(' AND '), terms };
}

/** Finds terms in texts, for many texts; `length` is the number of words of a text. */
export function createFinder(terms: readonly Term[]): (text: string) => { readonly found: readonly Occurrence[]; readonly length: number } {
  const initials = new Set(terms.flatMap((stems) => stems.map(([first]) => first)));
  return (text) => {
    const words = wordsOf(text, initials);
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
