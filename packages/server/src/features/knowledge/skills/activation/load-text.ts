import { hiddenCharacters } from '../../../../runtime/hidden-text.ts';

const maxCharacters = 20_000;
const marker = '\n[The skill is longer: the rest is left out.]';

/** The body of a skill as a model is shown it: without comments and hidden characters, in one spelling, bounded. */
export function loadText(body: string): string {
  let text = body.slice(0, maxCharacters * 4);
  // What is left when one comment is taken out of another must not become one; who goes on with that gets no comments at all.
  for (let pass = 0; pass < 10 && text.includes('<!--'); pass += 1) text = text.replace(/<!--[\s\S]*?(?:-->|$)/g, '');
  while (text.includes('<!--')) text = text.slice(0, text.indexOf('<!--'));
  text = text.normalize('NFKC').replace(hiddenCharacters, '').trim();
  return text.length <= maxCharacters ? text : `${text.slice(0, maxCharacters).toWellFormed()}${marker}`;
}
