import { Readability } from '@mozilla/readability';
import { createDocument, type ParsedDocument } from '@mixmark-io/domino';
import Turndown from 'turndown';

/** Text of a page, without its surroundings. */
export interface ReadableText {
  readonly title: string;
  /** Markdown. */
  readonly text: string;
}

/** Invisible to readers, and therefore a place to hide instructions for a model. */
const unreadable = 'script,style,noscript,template,iframe,object,embed,svg,canvas,form,dialog,[hidden],[aria-hidden="true"]';
const invisibleStyle =
  /display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0(?:\.0+)?\s*(?:;|$)|font-size\s*:\s*0|(?:left|top|text-indent)\s*:\s*-\d{3,}/i;

/**
 * Converts the page of `url` to Markdown: its article if one is found, otherwise the whole body; links become absolute.
 * Works on parsed text only; nothing is loaded or run.
 */
export function readHtml(html: string, url: string): ReadableText {
  const document = parse(html, url);
  for (const element of document.querySelectorAll(unreadable)) element.remove();
  for (const element of document.querySelectorAll('[style]')) if (invisibleStyle.test(element.getAttribute('style') ?? '')) element.remove();
  const title = (document.querySelector('title')?.textContent ?? '').trim();
  const turndown = new Turndown({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-' });
  turndown.remove(['script', 'style', 'noscript']);
  // The model does not see pictures, and their addresses may carry anything.
  turndown.addRule('pictures', { filter: 'img', replacement: (_content, node) => ('getAttribute' in node ? node.getAttribute('alt') : null) ?? '' });
  const whole = document.body.outerHTML;
  // Readability takes the document apart while it searches.
  const article = new Readability(document, { maxElemsToParse: 20_000, charThreshold: 200 }).parse();
  const found = article?.content ?? '';
  const text = turndown.turndown(found === '' ? whole : found);
  return { title: (article?.title ?? '') || title, text: text.trim() };
}

function parse(html: string, url: string): ParsedDocument {
  const document = createDocument(html, true);
  // This parser's node lists are not iterable and its documents have no addresses: add both.
  for (const list of [document.querySelectorAll('body'), document.getElementsByTagName('body')]) {
    if (!(Symbol.iterator in list)) Object.defineProperty(Object.getPrototypeOf(list), Symbol.iterator, { value: Array.prototype.values });
  }
  Object.defineProperties(document, { baseURI: { value: url }, documentURI: { value: url } });
  return document;
}
