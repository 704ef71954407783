import { lexer, type Token, type TokensList } from 'marked';

/** The blocks of a text that is mostly the text before with more at its end. */
export type BlockParser = (text: string) => readonly Token[];

/** Blocks at the end that more text may still change; the one before the last is there for safety. */
const openBlocks = 2;

/**
 * Parses an answer while it is written: blocks that are complete keep their tokens, as the same objects, so that a long
 * answer costs no more per piece than a short one. The result is that of parsing the whole text.
 */
export function createBlockParser(): BlockParser {
  let last = '';
  let tokens: readonly Token[] = [];
  /** A definition at the end changes links at the beginning: then nothing is kept. */
  let hasLinks = false;

  function whole(text: string): void {
    const all = parse(text);
    tokens = all;
    hasLinks = Object.keys(all.links).length > 0;
  }

  return (given) => {
    // As the parser does, so that lengths fit.
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
    return lexer(text, { gfm: true, breaks: true });
  } catch {
    const paragraph: Token = { type: 'paragraph', raw: text, text, tokens: [{ type: 'text', raw: text, text }] };
    return Object.assign([paragraph], { links: {} });
  }
}
