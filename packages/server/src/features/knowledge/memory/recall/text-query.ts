import { stem } from '../../../../kernel/stem.ts';
import { type WordWeight, weightOfStem } from './common-terms.ts';

/** Stop words, which say nothing about the topic; they are compared only with whole query words. */
const stopList = new Set(
  `a about after again all also am an and any are as at be because been before being both but by can could did do does doing done down each else ever few for from
  further get got had has have having he her here hers him his how i if in into is it its itself just let like me more most my myself no nor not now of off on once only or
  other our ours out over own please same shall she should so some such tell than that the their theirs them then there these they this those through to too under until up
  upon us very was we were what when where which while who whom whose why will with would you your yours`.split(/\s+/),
);

/** More terms find nothing more, and each costs a query. */
const maxTerms = 24;
/** Characters of a question that are read; the vector lane uses as many. */
export const queryCharacters = 6_144;

export interface QueryTerm extends WordWeight {
  readonly word: string;
}

export interface QueryTerms {
  /** Terms to search for, each with another stem. */
  readonly words: readonly QueryTerm[];
  /** Weight of all terms of the text together, also those that are not searched for. */
  readonly weight: WordWeight;
}

/**
 * Returns the search terms of a text, without stop words. Letters, their marks and digits only: none can be parsed as syntax of the
 * full text search. For a long text the rarest ones, from its beginning and its end, where people put their question.
 */
export function parseTerms(text: string): QueryTerms {
  const found = new Map<string, QueryTerm>();
  const weight = { says: 0, rare: 0 };
  for (const [word] of text
    .slice(0, queryCharacters)
    .normalize('NFKC')
    .toLowerCase()
    .matchAll(/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu)) {
    if (stopList.has(word) || word.length > 64) continue;
    const ofWord = stem(word);
    const before = found.get(ofWord);
    const { says, rare } = before === undefined ? weightOfStem(ofWord) : repeated(before);
    found.set(ofWord, { word: before?.word ?? word, says, rare });
    weight.says += says - (before?.says ?? 0);
    weight.rare += rare - (before?.rare ?? 0);
  }
  return { words: chosenOf([...found.values()]), weight };
}

/** An everyday word that is repeated is the topic of the text. */
const repeated = ({ says, rare }: WordWeight): WordWeight => ({ says, rare: rare > 0 ? 1 : 0 });

function chosenOf(words: readonly QueryTerm[]): readonly QueryTerm[] {
  const chosen: QueryTerm[] = [];
  for (const wanted of [1, 0.5, 0]) {
    const these = words.filter(({ rare }) => rare === wanted);
    const left = maxTerms - chosen.length;
    if (these.length <= left) chosen.push(...these);
    else return [...chosen, ...these.slice(0, Math.ceil(left / 2)), ...these.slice(these.length - Math.floor(left / 2))];
  }
  return chosen;
}
