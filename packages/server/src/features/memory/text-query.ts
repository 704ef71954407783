/** Words that say nothing about what is looked for; only whole words of the query are compared with them. */
const stopWords = new Set(
  `a about after again all also am an and any are as at be because been before being both but by can could did do does doing done down each else ever few for from
  further get got had has have having he her here hers him his how i if in into is it its itself just let like me more most my myself no nor not now of off on once only or
  other our ours out over own please same shall she should so some such tell than that the their theirs them then there these they this those through to too under until up
  upon us very was we were what when where which while who whom whose why will with would you your yours`.split(/\s+/),
);

/** More words find nothing more, and each costs a look-up. */
const maxWords = 24;
/** Characters of a question that are looked at; the vector lane takes as many. */
export const queryCharacters = 6_144;

/**
 * Words of a text to look for, without those that say nothing, in their order. Letters, their marks and digits only: none can be read
 * as syntax of the full text search.
 */
export function queryWords(text: string): string[] {
  const words = new Set<string>();
  for (const [word] of text
    .slice(0, queryCharacters)
    .normalize('NFKC')
    .toLowerCase()
    .matchAll(/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu)) {
    if (stopWords.has(word) || word.length > 64) continue;
    words.add(word);
    if (words.size === maxWords) break;
  }
  return [...words];
}

/** Words of a query that say something: a single letter is what is left of a contraction. */
export const isContentWord = (word: string): boolean => !/^\p{Script=Latin}$/u.test(word);
