import type { TextRules } from '../../port.ts';
import { cutBlocks } from './cut-blocks.ts';
import { escapeMarkdown, joinBlocks } from './markdown-source.ts';
import { cutLines } from './cut-lines.ts';
import { plainMarks, renderLines } from '../lines.ts';
import { render } from '../render.ts';
import { cleanText, known, parse } from '../tree.ts';

const cutNote = '… (cut)';
const fileNote = '… (the rest is in the file)';
/** Definitions of links that are looked for in each part; others are text. */
const maxDefinitions = 100;

/**
 * Cuts an answer into parts, each of them Markdown whose rendered text and markup fit. On platforms whose parts are lines they are plain lines.
 * It is cut between blocks where it can be, then between lines, then at spaces.
 */
export function cutMarkdown(markdown: string, rules: TextRules): string[] {
  return cut(markdown, rules, cutNote).parts;
}

export interface CutWithRest {
  readonly parts: string[];
  /** Markdown of what is in none of the parts; empty when there is none. */
  readonly rest: string;
}

/** Cuts an answer like `cutMarkdown`, for platforms that take files: what is not in the parts is returned, and the last part names the file. */
export function cutWithRest(markdown: string, rules: TextRules): CutWithRest {
  return cut(markdown, rules, fileNote);
}

function cut(markdown: string, rules: TextRules, note: string): CutWithRest {
  const source = cleanText(markdown);
  if (rules.isLine) return { parts: cutLines(renderLines(known(parse(source)), plainMarks), rules, cutNote), rest: '' };
  const found = cutSource(source, rules, note);
  // Definitions of links that nothing uses show nothing: nobody gets an empty answer.
  return found.parts.length === 0 ? cutSource(escapeMarkdown(source), rules, note) : found;
}

function cutSource(source: string, rules: TextRules, note: string): CutWithRest {
  const complete = withDefinitions(source);
  // What is far too long is not even rendered.
  const fits = (part: string): boolean => part.length <= 8 * rules.most + 1_000 && fitsRules(complete(part), rules);
  const parts: string[] = [];
  for (let rest = source; rest.trim() !== '';) {
    const isLast = parts.length === rules.maxParts - 1;
    const noted = (part: string): string => joinBlocks(part, note);
    const { head, rest: left } = fits(rest) ? { head: rest, rest: '' } : nextPart(rest, complete, isLast ? (part) => fits(noted(part)) : fits);
    const part = complete(isLast && left !== '' ? noted(head) : head);
    if (isVisible(part, rules)) parts.push(part.replace(/^\n+/, '').trimEnd());
    if (parts.length === rules.maxParts) return { parts, rest: left.trim() === '' ? '' : complete(left).trim() };
    rest = left;
  }
  return { parts, rest: '' };
}

/** Cuts off a part. Blocks that cannot be cut become simpler ones before. */
function nextPart(source: string, complete: (part: string) => string, fits: (part: string) => boolean): { head: string; rest: string } {
  for (let left = source; ;) {
    const cut = cutBlocks(known(parse(complete(left))), { fits, fitsAlone: fits, isFresh: true });
    if (cut === undefined) return forced(left);
    if (cut.head !== '' || cut.rest === '') return cut;
    left = cut.rest;
  }
}

/** Takes a character when not even that fits. */
function forced(source: string): { head: string; rest: string } {
  const [first = ''] = source.trimStart();
  return { head: escapeMarkdown(first), rest: source.trimStart().slice(first.length) };
}

function fitsRules(part: string, { flavour, most, unit }: TextRules): boolean {
  const { text, markup = '' } = render(part, flavour);
  return unit === 'bytes' ? Buffer.byteLength(text) <= most && Buffer.byteLength(markup) <= most : text.length <= most && markup.length <= most;
}

/** Whether a part shows anything: platforms refuse empty messages. */
const isVisible = (part: string, { flavour }: TextRules): boolean => /[^\s\p{Cf}]/u.test(render(part, flavour).text);

/** Returns how to put the definitions of links that a part uses before it: those of the answer may be in another part. */
function withDefinitions(source: string): (part: string) => string {
  const links = Object.entries(parse(source).links)
    .slice(0, maxDefinitions)
    .flatMap(([tag, { href }]) => (/[<>\n\\]/.test(href) ? [] : [{ mark: `[${tag}]`, definition: `[${tag}]: <${href}>` }]));
  if (links.length === 0) return (part) => part;
  return (part) => {
    const words = part.toLowerCase().replaceAll(/\s+/g, ' ');
    const used = links.filter(({ mark, definition }) => words.includes(mark) && !part.includes(definition));
    return used.length === 0 ? part : `${used.map(({ definition }) => definition).join('\n')}\n\n${part.replace(/^\n+/, '')}`;
  };
}
