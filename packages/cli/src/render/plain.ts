/** Characters beyond ASCII that a terminal interprets or hides: C1 controls, line separators, direction marks. */
const unsafe = /[\u0080-\u009f\u061c\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
/** The same plus ASCII controls, except for tab and line feed. */
const unsafeInText = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/**
 * Makes a line safe to print: JSON keeps its value, because such characters occur in its strings only. Colours and
 * cursor movements of the command itself are ASCII and pass.
 */
export function printableLine(text: string): string {
  return text.replaceAll(unsafe, escape);
}

/** Makes untrusted multi-line text safe for a terminal. */
export function printableText(text: string): string {
  return text.replaceAll(unsafeInText, escape);
}

/**
 * Escapes untrusted text (a message, a file name): everything that would move the cursor, colour the terminal or
 * change the reading direction, so that shown text can't forge lines.
 */
export function plainText(text: string): string {
  return text.replaceAll(/[\p{Cc}\u061c\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, escape);
}

function escape(character: string): string {
  if (character === '\n') return '\\n';
  if (character === '\t') return '\\t';
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Shortens a text to `limit` characters (code points), ending with an ellipsis if cut. */
export function shorten(text: string, limit: number): string {
  const start = Array.from(text.slice(0, limit * 2 + 2));
  return start.length <= limit ? text : `${start.slice(0, limit - 1).join('')}…`;
}
