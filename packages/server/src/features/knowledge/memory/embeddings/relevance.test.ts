import { AgentConfig } from '@gatehouse/contract';
import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { calibrate, defaultCalibration, referenceTexts } from './relevance.ts';
import { fixtureVector } from '../testing/fixture-vectors.ts';
import { type LabelledPair, labelledPairs, paraphrasedPairs } from '../testing/labelled-pairs.ts';
import { latePairs, longAndShortPairs } from '../testing/long-pairs.ts';
import { hashingEmbed, openMemory, untilEmbedded } from '../testing/open-memory.ts';

const { minScore } = AgentConfig.parse({}).memory.recall;
/** Every second pair was held out while the scores were tuned. */
const isHeldOut = (_: LabelledPair, index: number) => index % 2 === 1;
const heldOut = [...labelledPairs.filter(isHeldOut), ...longAndShortPairs.filter(isHeldOut), ...latePairs];
const longAndShort = [...longAndShortPairs, ...latePairs];
/** Each long message and each short question without a helpful memory, with every memory of the others. */
const relatedTo = new Map(longAndShort.flatMap(({ question, memory, related }) => (related ? [[question, memory] as const] : [])));
const strangers = [...new Set(longAndShort.map(({ question }) => question))]
  .filter((question) => !relatedTo.has(question))
  .flatMap((question) => [...new Set(longAndShort.map(({ memory }) => memory))].map((memory) => ({ question, memory, related: false })));
const families = {
  'a model with low cosines': { common: 0.1, topic: 0.45 },
  'a model whose texts are all near each other': { common: 0.72, topic: 0.14 },
  'a model in between': { common: 0.3, topic: 0.35 },
};

type Embed = typeof hashingEmbed;

/** The score of each pair, where the memory is one of all memories. */
async function scoresOf(pairs: readonly LabelledPair[], embed: Embed | 'none', model: string): Promise<Map<LabelledPair, number>> {
  await using memory = await openMemory({ clock: createStepClock(), embed, model, provider: model === 'hashing' ? 'hashing' : 'test' });
  const ids = new Map<string, string>();
  for (const { memory: content } of pairs) if (!ids.has(content)) ids.set(content, await memory.add(content));
  if (embed !== 'none') await untilEmbedded(memory);
  const scores = new Map<LabelledPair, number>();
  const answers = new Map<string, Awaited<ReturnType<typeof memory.explain>>>();
  for (const pair of pairs) {
    const found = answers.get(pair.question) ?? (await memory.explain(pair.question, { limit: 100 }));
    answers.set(pair.question, found);
    scores.set(pair, found.find(({ entry }) => entry.id === ids.get(pair.memory))?.score ?? 0);
  }
  return scores;
}

function judge(scores: ReadonlyMap<LabelledPair, number>) {
  const all = [...scores];
  const share = (related: boolean, holds: (score: number) => boolean) => {
    const of = all.filter(([pair]) => pair.related === related);
    return of.filter(([, score]) => holds(score)).length / of.length;
  };
  return {
    relatedAboveHalf: share(true, (score) => score > 0.5),
    unrelatedBelowFifth: share(false, (score) => score < 0.2),
    unrelatedRecalled: all.filter(([pair, score]) => !pair.related && score >= minScore).map(([pair, score]) => ({ ...pair, score })),
    missed: all.filter(([pair, score]) => pair.related && score <= 0.5).map(([pair, score]) => ({ ...pair, score })),
  };
}

function expectGood(scores: ReadonlyMap<LabelledPair, number>): void {
  const { relatedAboveHalf, unrelatedBelowFifth, unrelatedRecalled, missed } = judge(scores);
  expect(unrelatedRecalled).toEqual([]);
  expect(unrelatedBelowFifth).toBeGreaterThanOrEqual(0.95);
  expect(relatedAboveHalf, JSON.stringify(missed)).toBeGreaterThanOrEqual(0.95);
}

test.each([
  ['words alone', 'none' as const],
  ['the hashing embedder', hashingEmbed],
])('with %s related text scores above 0.5 and unrelated text near 0', async (_name, embed) => {
  expectGood(await scoresOf(heldOut, embed, 'hashing'));
});

test.each(Object.entries(families))('with %s paraphrases without common terms are found', async (name, family) => {
  const embed: Embed = async ({ texts }) => ({ vectors: texts.map((text) => fixtureVector(text, family)), model: name, tokens: 1 });
  expectGood(await scoresOf([...heldOut, ...paraphrasedPairs], embed, name));
});

test.each([
  ['words alone', 'none' as const],
  ['the hashing embedder', hashingEmbed],
])('with %s a long message, or a question of one or two terms, recalls nothing that shares terms by chance', async (_name, embed) => {
  expect(judge(await scoresOf(strangers, embed, 'hashing')).unrelatedRecalled).toEqual([]);
});

test('an embedder that cannot separate related from unrelated text is not calibrated by it', () => {
  expect(calibrate(referenceTexts.map(() => new Float32Array([1, 0])))).toEqual(defaultCalibration);
  expect(calibrate(referenceTexts.map(() => new Float32Array([Number.NaN])))).toEqual(defaultCalibration);
});

test('an unrelated memory is not recalled, however near the embedder puts it', async () => {
  await using memory = await openMemory({ clock: createStepClock(), provider: 'hashing' });
  await memory.add('The cat sleeps on the sofa');
  await untilEmbedded(memory);
  for (const question of ['quarterly tax filing deadline', 'What is 2+2?']) expect(await memory.find(question, { minScore })).toEqual([]);
  expect(await memory.find('Where does the cat sleep?', { minScore })).toEqual(['The cat sleeps on the sofa']);
});
