/**
 * A value as JSON over several lines, whole, with every character that draws nothing or turns the reading direction
 * written as an escape: what is shown must not read otherwise than what is done.
 */
export function revealedJson(value: unknown): string {
  return reveal(JSON.stringify(value, null, 2) ?? 'null', jsonEscape);
}

/** The same for one line of text. */
export function revealedText(text: string): string {
  return reveal(text, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

function reveal(text: string, escape: (character: string) => string): string {
  return text.replaceAll(/[^\n\P{C}]|\p{Zl}|\p{Zp}|(?!\p{C})\p{Default_Ignorable_Code_Point}/gu, escape);
}

function jsonEscape(character: string): string {
  return Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`).join('');
}
