import { foldText } from '../../../../runtime/hidden-text.ts';

/** Words that say nothing about the topic of a text. */
const empty = new Set(
  'the and for with that this from you your are can could would should use uses used using into about what when where which how why who has have had will not but all any some other more most than then them they its our out over also only just please make made get give help want need user users task tasks work works new one two let und der die das mit für von den des ein eine les des pour avec une los las con para por una'.split(
    ' ',
  ),
);
const questionEnds = 2_000;
/** A name in the question outweighs any other term. */
const nameScore = 10;
const leastScore = 2;

export function termsOf(text: string): Set<string> {
  const words = new Set<string>();
  for (const [word] of foldText(text)
    .toLowerCase()
    .matchAll(/[\p{L}\p{N}]{3,40}/gu))
    if (!empty.has(word)) words.add(stem(word));
  return words;
}

/** Matches plural and singular; finer stemming is not worth its mistakes. */
function stem(word: string): string {
  return word.length > 4 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word;
}

export interface Matchable {
  readonly name: string;
  readonly description: string;
  readonly promoted: boolean;
}

/** Finds skills for a question by the terms of names and descriptions. */
export function createMatcher<T extends Matchable>(skills: readonly T[]): (question: string, limit: number) => readonly T[] {
  const byWord = new Map<string, number[]>();
  skills.forEach(({ name, description }, index) => {
    for (const word of termsOf(`${name.replaceAll('-', ' ')} ${description}`)) byWord.set(word, [...(byWord.get(word) ?? []), index]);
  });
  const names = skills.map(({ name }) => ({ dashed: ` ${name} `, spaced: ` ${name.replaceAll('-', ' ')} ` }));
  return (question, limit) => {
    if (skills.length === 0 || limit === 0) return [];
    const asked = question.length <= questionEnds * 2 ? question : `${question.slice(0, questionEnds)} ${question.slice(-questionEnds)}`;
    const scores = new Map<number, number>();
    for (const word of termsOf(asked)) for (const index of byWord.get(word) ?? []) scores.set(index, (scores.get(index) ?? 0) + 1);
    const plain = ` ${foldText(asked)
      .toLowerCase()
      .replace(/[^\p{L}\p{N}-]+/gu, ' ')} `;
    names.forEach(({ dashed, spaced }, index) => {
      if (plain.includes(dashed) || plain.includes(spaced)) scores.set(index, (scores.get(index) ?? 0) + nameScore);
    });
    return [...scores]
      .filter(([, score]) => score >= leastScore)
      .flatMap(([index, score]) => (skills[index] === undefined ? [] : [{ skill: skills[index], score }]))
      .toSorted((a, b) => Number(b.skill.promoted) - Number(a.skill.promoted) || b.score - a.score || (a.skill.name < b.skill.name ? -1 : 1))
      .slice(0, limit)
      .map(({ skill }) => skill);
  };
}
