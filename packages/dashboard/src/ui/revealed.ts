/**
 * Formats a value as complete, multi-line JSON, with every invisible or direction-changing character
 * escaped, so that what is shown can't differ from what is done.
 */
export function revealedJson(value: unknown): string {
  return reveal(JSON.stringify(value, null, 2) ?? 'null', jsonEscape);
}

/** Escapes the same characters in one line of text. */
export function revealedText(text: string): string {
  return reveal(text, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

function reveal(text: string, escape: (character: string) => string): string {
  return text.replaceAll(/[^\n\P{C}]|\p{Zl}|\p{Zp}|(?!\p{C})\p{Default_Ignorable_Code_Point}/gu, escape);
}

function jsonEscape(character: string): string {
  return Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`).join('');
}
