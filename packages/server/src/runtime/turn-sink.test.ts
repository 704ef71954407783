import { expect, expectTypeOf, it } from 'vitest';
import { toFragment } from '../kernel/json-fragment.ts';
import type { ModelSink } from '../llm/model.ts';
import type { TurnSink } from './turn.ts';

it('takes escaped fragments: plain text does not compile', () => {
  // Planted: a quote in plain text would break the frame of every client.
  expectTypeOf<string>().not.toExtend<Parameters<ModelSink['text']>[0]>();
  expectTypeOf<string>().not.toExtend<Parameters<TurnSink['text']>[0]>();
  expectTypeOf(toFragment('x')).toExtend<Parameters<TurnSink['text']>[0]>();
  const sent: string[] = [];
  const text: TurnSink['text'] = (fragment) => sent.push(fragment);
  // @ts-expect-error -- planted: the type check refuses it
  text('She said "no"');
  text(toFragment('She said "no"'));
  expect(sent).toEqual(['She said "no"', 'She said \\"no\\"']);
});
