import { hiddenCharacters } from '../../../../runtime/hidden-text.ts';

/** Colours and cursor moves of terminals, which programs write into text that was meant for people. */
const terminalCodes =
  /\u001b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\u0007\u001b]{0,2048}(?:\u0007|\u001b\\)|[@-Z\\^_])|\u009b[0-?]{0,64}[ -/]{0,8}[@-~]/g;
const nothingToDo = /^[\t\n\r\u0020-\u007e]*$/;

/** Text of a server without terminal codes and characters that a reader does not see; otherwise as it is. */
export function cleanText(text: string): string {
  if (nothingToDo.test(text)) return text;
  return text.toWellFormed().replace(terminalCodes, '').replace(hiddenCharacters, '');
}

/**
 * Words of a server that stand outside a fence (descriptions): compatibility forms become plain letters as well, so
 * that what is looked for in a text is found, and at most `maxLength` characters are left.
 */
export function cleanWords(text: string, maxLength: number): string {
  // Cut before the work, and again after it: one character may unfold into eighteen.
  const plain = cleanText(text.slice(0, maxLength * 2)).normalize('NFKC');
  return plain.length > maxLength ? `${plain.slice(0, maxLength - 1).toWellFormed()}…` : plain;
}
