/** What a terminal obeys or hides beyond ASCII: C1 controls, line separators, marks of the reading direction. */
const unsafe = /[\u0080-\u009f\u061c\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
/** The same with the controls of ASCII, except for tab and line feed. */
const unsafeInText = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/**
 * A line as it may be printed: JSON stays the same value, since such characters stand only in its strings. Colours and
 * cursor movements of the command itself, which are ASCII, pass.
 */
export function printableLine(text: string): string {
  return text.replaceAll(unsafe, escape);
}

/** Text of several lines that others wrote, for a terminal. */
export function printableText(text: string): string {
  return text.replaceAll(unsafeInText, escape);
}

/**
 * What others wrote (a message, a file name) with everything escaped that would move the cursor, colour the terminal or
 * turn the reading direction: shown text must not be able to forge lines.
 */
export function plainText(text: string): string {
  return text.replaceAll(/[\p{Cc}\u061c\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, escape);
}

function escape(character: string): string {
  if (character === '\n') return '\\n';
  if (character === '\t') return '\\t';
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** At most `limit` characters (code points), the last one an ellipsis when more would follow. */
export function shorten(text: string, limit: number): string {
  const start = Array.from(text.slice(0, limit * 2 + 2));
  return start.length <= limit ? text : `${start.slice(0, limit - 1).join('')}…`;
}
