import type { Io } from '../io.ts';
import { printableText } from '../render/plain.ts';

/** Prints model output; on a terminal it must not move the cursor or change the reading direction. */
export function shownText(text: string, io: Io): string {
  return io.stdout.isTTY === true ? printableText(text) : text;
}
