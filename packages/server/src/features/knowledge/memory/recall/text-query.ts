import { stem } from '../../../../kernel/stem.ts';
import { type WordWeight, weightOfStem } from './common-terms.ts';

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

export interface QueryWord extends WordWeight {
  readonly word: string;
}

export interface QueryWords {
  /** To look for, each with another stem. */
  readonly words: readonly QueryWord[];
  /** Of all words of the text together, also those that are not looked for. */
  readonly weight: WordWeight;
}

/**
 * Words of a text to look for, without those that say nothing. Letters, their marks and digits only: none can be read as syntax of the
 * full text search. Of a long text the rarest, from its beginning and its end, where people put their question.
 */
export function readWords(text: string): QueryWords {
  const found = new Map<string, QueryWord>();
  const weight = { says: 0, rare: 0 };
  for (const [word] of text
    .slice(0, queryCharacters)
    .normalize('NFKC')
    .toLowerCase()
    .matchAll(/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu)) {
    if (stopWords.has(word) || word.length > 64) continue;
    const ofWord = stem(word);
    const before = found.get(ofWord);
    const { says, rare } = before === undefined ? weightOfStem(ofWord) : repeated(before);
    found.set(ofWord, { word: before?.word ?? word, says, rare });
    weight.says += says - (before?.says ?? 0);
    weight.rare += rare - (before?.rare ?? 0);
  }
  return { words: chosenOf([...found.values()]), weight };
}

/** An everyday word that comes again is what the text is about. */
const repeated = ({ says, rare }: WordWeight): WordWeight => ({ says, rare: rare > 0 ? 1 : 0 });

function chosenOf(words: readonly QueryWord[]): readonly QueryWord[] {
  const chosen: QueryWord[] = [];
  for (const wanted of [1, 0.5, 0]) {
    const these = words.filter(({ rare }) => rare === wanted);
    const room = maxWords - chosen.length;
    if (these.length <= room) chosen.push(...these);
    else return [...chosen, ...these.slice(0, Math.ceil(room / 2)), ...these.slice(these.length - Math.floor(room / 2))];
  }
  return chosen;
}
