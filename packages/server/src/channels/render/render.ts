import type { TextFlavour } from '../port.ts';
import { discordMarks, slackMarks, telegramMarks, withoutMentions } from './flavours.ts';
import { htmlDocument, renderHtml } from './html.ts';
import { plainMarks, renderLines } from './lines.ts';
import { cleanText, known, parse } from './tree.ts';

export interface Rendered {
  /** Without markup. */
  readonly text: string;
  /** The same in the markup of the platform; undefined where it has none. */
  readonly markup?: string;
}

/** Renders a part of an answer, always in the same way: it is stored as Markdown and rendered at each try. */
export function render(part: string, flavour: TextFlavour): Rendered {
  const clean = cleanText(part);
  // Lines were rendered when they were cut; a line break would begin a command of the protocol.
  if (flavour === 'irc') return { text: clean.replaceAll('\n', ' ') };
  const tokens = known(parse(clean));
  const text = trimmed(renderLines(tokens, plainMarks));
  switch (flavour) {
    case 'plain':
      return { text };
    case 'telegram':
      return { text, markup: trimmed(renderLines(tokens, telegramMarks)) };
    case 'slack':
      return { text, markup: withoutMentions(trimmed(renderLines(tokens, slackMarks))) };
    case 'discord':
      return { text, markup: trimmed(renderLines(tokens, discordMarks)) };
    case 'matrix':
      return { text, markup: renderHtml(tokens) };
    case 'email':
      return { text, markup: htmlDocument(renderHtml(tokens)) };
  }
}

const trimmed = (text: string): string => text.replace(/^\n+/, '').trimEnd();
