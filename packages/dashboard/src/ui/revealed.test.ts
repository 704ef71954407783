import { expect, test } from 'vitest';
import { revealedJson, revealedText } from './revealed.ts';

test('escapes invisible characters, and the JSON keeps its value', () => {
  const value = { path: 'a\u202egnp.sh', zero: 'rm\u200b -rf', tag: '\u{e0041}', lines: 'a\nb', text: 'Grüße, 世界 👋' };
  const shown = revealedJson(value);
  expect(shown).toContain('a\\u202egnp.sh');
  expect(shown).toContain('rm\\u200b -rf');
  expect(shown).toContain('\\udb40\\udc41');
  expect(shown).toContain('Grüße, 世界 👋');
  expect(JSON.parse(shown)).toEqual(value);
  expect(shown.split('\n')).toHaveLength(7);
  expect(revealedText('exe.\u202egnp')).toBe('exe.\\u{202e}gnp');
});
