import { hiddenCharacters } from '../../../../runtime/hidden-text.ts';

/** Terminal colours and cursor moves, which programs write into text for people. */
const terminalCodes =
  /\u001b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\u0007\u001b]{0,2048}(?:\u0007|\u001b\\)|[@-Z\\^_])|\u009b[0-?]{0,64}[ -/]{0,8}[@-~]/g;
const nothingToDo = /^[\t\n\r\u0020-\u007e]*$/;

/** Strips terminal codes and invisible characters from text of a server. */
export function cleanText(text: string): string {
  if (nothingToDo.test(text)) return text;
  return text.toWellFormed().replace(terminalCodes, '').replace(hiddenCharacters, '');
}

/**
 * Cleans server text that appears outside a fence (descriptions): also maps compatibility forms to plain letters, so
 * that searches in the text find them, and keeps at most `maxLength` characters.
 */
export function cleanLabel(text: string, maxLength: number): string {
  // Cut before and after normalization: one character may expand into eighteen.
  const plain = cleanText(text.slice(0, maxLength * 2)).normalize('NFKC');
  return plain.length > maxLength ? `${plain.slice(0, maxLength - 1).toWellFormed()}…` : plain;
}
