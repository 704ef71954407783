import { countTokens } from './count-tokens.ts';
import type { ModelPart } from './model.ts';

/** Vendors charge by pixels, up to about this much; a smaller image is counted too high, never too low. */
const imageTokens = 1600;
/** A PDF page is charged as its text and as an image, and takes between 10 and 100 kB of the file. */
const fileBytesPerToken = 6;
const fileTokens = { least: 500, most: 100_000 };

/** Counts the tokens of a message's parts, without reading images and files. */
export function countParts(parts: readonly ModelPart[]): number {
  let tokens = 0;
  for (const part of parts) {
    if (part.type === 'text') tokens += countTokens(part.text) + 2;
    else if (part.type === 'image') tokens += imageTokens;
    else tokens += Math.min(fileTokens.most, Math.max(fileTokens.least, Math.ceil((part.url.length * 3) / 4 / fileBytesPerToken)));
  }
  return tokens;
}
