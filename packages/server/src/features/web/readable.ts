import { Readability } from '@mozilla/readability';
import { parseHTML } from 'linkedom';
import Turndown from 'turndown';

/** What a page says, without what surrounds it. */
export interface ReadableText {
  readonly title: string;
  /** Markdown. */
  readonly text: string;
}

/** Not for readers, and therefore a place for instructions to a model. */
const unreadable = 'script,style,noscript,template,iframe,object,embed,svg,canvas,form,dialog,[hidden],[aria-hidden="true"]';
const invisibleStyle =
  /display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0(?:\.0+)?\s*(?:;|$)|font-size\s*:\s*0|(?:left|top|text-indent)\s*:\s*-\d{3,}/i;

/** Turns a page into Markdown: its article where one is found, the whole body otherwise. Works on parsed text only; nothing is loaded or run. */
export function readHtml(html: string): ReadableText {
  const { document } = parseHTML(/<html[\s>]/i.test(html) ? html : `<html><body>${html}</body></html>`);
  for (const element of document.querySelectorAll(unreadable)) element.remove();
  for (const element of document.querySelectorAll('[style]')) if (invisibleStyle.test(element.getAttribute('style') ?? '')) element.remove();
  const title = (document.querySelector('title')?.textContent ?? '').trim();
  const turndown = new Turndown({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-' });
  turndown.remove(['script', 'style', 'noscript']);
  // Pictures are not seen by whoever reads this, and their addresses may carry anything.
  turndown.addRule('pictures', { filter: 'img', replacement: (_content, node) => ('getAttribute' in node ? node.getAttribute('alt') : null) ?? '' });
  // As text: over nodes of this parser the conversion takes time quadratic in their number.
  const whole = String(document.body);
  // It takes the document apart while it searches.
  const article = new Readability(document, { maxElemsToParse: 20_000, charThreshold: 200 }).parse();
  const found = article?.content ?? '';
  const text = turndown.turndown(found === '' ? whole : found);
  return { title: (article?.title ?? '') || title, text: text.trim() };
}
