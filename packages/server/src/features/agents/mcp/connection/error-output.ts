const maxCharacters = 65_536;

/** The last output of a program to stderr, at most 64 KiB. */
export interface ErrorOutput {
  push(text: string): void;
  text(): string;
}

export function createErrorOutput(): ErrorOutput {
  let pieces: string[] = [];
  let length = 0;
  return {
    push(text) {
      pieces.push(text.slice(-maxCharacters));
      length += Math.min(text.length, maxCharacters);
      if (length <= 2 * maxCharacters) return;
      pieces = [pieces.join('').slice(-maxCharacters)];
      length = maxCharacters;
    },
    text: () => pieces.join('').slice(-maxCharacters).toWellFormed(),
  };
}
