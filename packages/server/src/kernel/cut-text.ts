/** Returns at most `length` UTF-16 units from the start of a text without splitting a character. */
export function headOf(text: string, length: number): string {
  if (text.length <= length) return text;
  return text.slice(0, isHighSurrogate(text, length - 1) ? length - 1 : length);
}

/** Returns at most `length` UTF-16 units from the end of a text without splitting a character. */
export function tailOf(text: string, length: number): string {
  if (text.length <= length) return text;
  const from = text.length - length;
  return text.slice(isHighSurrogate(text, from - 1) ? from + 1 : from);
}

function isHighSurrogate(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  return code >= 0xd800 && code <= 0xdbff;
}
