import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { guides, shownText } from './guides.ts';

test.each(Object.keys(guides))('the guide %s exists, and is shown without pictures and links to files', async (name) => {
  const text = await readFile(new URL(`../../../../../docs/guide/${name}.md`, import.meta.url), 'utf8');
  const shown = shownText(text);
  expect(shown.length).toBeGreaterThan(text.length / 2);
  expect(shown).not.toMatch(/^# |!\[|\]\((?!https?:)/m);
});
