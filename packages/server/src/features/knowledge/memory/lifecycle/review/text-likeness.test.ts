import { describe, expect, test } from 'vitest';
import { foldTerms, likeness, saysTheSame } from './text-likeness.ts';

const same = (a: string, b: string, cosine?: number, threshold = 0.85) => saysTheSame(foldTerms(a), foldTerms(b), cosine, threshold);

describe('texts say the same', () => {
  test('when their terms are the same', () => {
    expect(same('Ada likes tea.', '  ADA, likes: tea')).toBe(true);
    expect(same('…', '!')).toBe(true);
    expect(same('Ada likes tea', 'Ada likes coffee')).toBe(false);
  });
  test('when their vectors are near and they share terms', () => {
    expect(same('Ada drinks tea every morning', 'Every morning Ada has tea', 0.9)).toBe(true);
    expect(same('Ada drinks tea every morning', 'Every morning Ada has tea', 0.8)).toBe(false);
    expect(same('Ada drinks tea every morning', 'The server restarts at night', 0.99)).toBe(false);
  });
  test('never with different numbers', () => {
    expect(same('The port of the old gateway in the office is 4766', 'The port of the old gateway in the office is 4767', 0.99)).toBe(false);
  });
  test('also without spaces between terms', () => {
    expect(likeness(foldTerms('我喜欢喝绿茶'), foldTerms('我喜欢喝红茶'))).toBeCloseTo(5 / 7);
  });
});
