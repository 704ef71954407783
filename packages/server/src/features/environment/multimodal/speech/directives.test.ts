import { expect, test } from 'vitest';
import { checkAuto, readDirectives } from './directives.ts';

test.each([
  ['Hi', 'Hi', undefined],
  ['[[tts]] Hi', 'Hi', {}],
  ['a [[tts:voice=nova speed=1.5 format=OPUS]] b [[tts:voice=echo]]', 'a  b', { voice: 'nova', speed: 1.5, format: 'opus' }],
  ['[[tts:voice=../x speed=99 format=exe other=1]]x', 'x', {}],
  ['[[tts:voice=nova', '[[tts:voice=nova', undefined],
] as const)('reads the directives of %j', (given, text, directive) => {
  expect(readDirectives(given)).toEqual({ text, directive });
});

test('reads a text of openings quickly', () => {
  const text = '[[tts:'.repeat(20_000);
  expect(readDirectives(text)).toEqual({ text, directive: undefined });
});

const answer = { text: 'Hi', hasInboundAudio: false, hasMedia: false };
test.each([
  ['off', { ...answer, hasInboundAudio: true }, false],
  ['never', { ...answer, text: '[[tts]]Hi' }, false],
  ['always', answer, true],
  ['always', { ...answer, hasMedia: true }, false],
  ['voice_reply', { ...answer, hasInboundAudio: true }, true],
  ['voice_reply', { ...answer, hasInboundAudio: true, hasMedia: true }, false],
  ['inbound', answer, false],
  ['inbound', { ...answer, hasInboundAudio: true }, true],
  ['tagged', { ...answer, text: '[[tts]]Hi' }, true],
  ['tagged', answer, false],
  ['always', { ...answer, text: '[[tts]]' }, false],
] as const)('in mode %s decides about %j: %s', (mode, given, shouldSynthesize) => {
  expect(checkAuto(mode, given)).toMatchObject({ shouldSynthesize, mode });
});
