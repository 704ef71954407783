import { hiddenCharacters } from '../../../../runtime/hidden-text.ts';

const maxCharacters = 20_000;
const marker = '\n[The skill is longer: the rest is omitted.]';

/** Returns the body of a skill for a model: without comments and hidden characters, normalized, and cut to a limit. */
export function loadText(body: string): string {
  let text = body.slice(0, maxCharacters * 4);
  // Removing one comment from inside another must not form a new one; text that keeps doing so loses all comments.
  for (let pass = 0; pass < 10 && text.includes('<!--'); pass += 1) text = text.replace(/<!--[\s\S]*?(?:-->|$)/g, '');
  while (text.includes('<!--')) text = text.slice(0, text.indexOf('<!--'));
  text = text.normalize('NFKC').replace(hiddenCharacters, '').trim();
  return text.length <= maxCharacters ? text : `${text.slice(0, maxCharacters).toWellFormed()}${marker}`;
}
