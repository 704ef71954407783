import type { Token, TokensList } from 'marked';
import { parseMarkdown } from './syntax.ts';

/** The blocks of a text that usually extends the previous text. */
export type BlockParser = (text: string) => readonly Token[];

/** Number of blocks at the end that more text may still change; the one before the last is a safety margin. */
const openBlocks = 2;

/**
 * Parses an answer while it is written: complete blocks keep their tokens, as the same objects, so that a long
 * answer costs no more per delta than a short one. The result equals parsing the whole text.
 */
export function createBlockParser(): BlockParser {
  let last = '';
  let tokens: readonly Token[] = [];
  /** A link definition at the end changes links at the beginning, so everything is parsed again. */
  let hasLinks = false;

  function whole(text: string): void {
    const all = parse(text);
    tokens = all;
    hasLinks = Object.keys(all.links).length > 0;
  }

  return (given) => {
    // Normalizes like the parser, so that lengths match.
    const text = given.replaceAll(/\r\n|\r/g, '\n');
    if (text === last) return tokens;
    const kept = text.startsWith(last) && !hasLinks ? complete(tokens) : [];
    const keptLength = kept.reduce((sum, { raw }) => sum + raw.length, 0);
    const isWhole = kept.length === 0 || tokens.reduce((sum, { raw }) => sum + raw.length, 0) !== last.length;
    last = text;
    if (isWhole) {
      whole(text);
      return tokens;
    }
    const rest = parse(text.slice(keptLength));
    if (Object.keys(rest.links).length > 0) whole(text);
    else tokens = [...kept, ...rest];
    return tokens;
  };
}

function complete(tokens: readonly Token[]): readonly Token[] {
  let open = 0;
  let at = tokens.length;
  while (at > 0 && open < openBlocks) {
    at -= 1;
    if (tokens[at]?.type !== 'space') open += 1;
  }
  return tokens.slice(0, at);
}

function parse(text: string): TokensList {
  try {
    return parseMarkdown(text);
  } catch {
    const paragraph: Token = { type: 'paragraph', raw: text, text, tokens: [{ type: 'text', raw: text, text }] };
    return Object.assign([paragraph], { links: {} });
  }
}
