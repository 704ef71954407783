import type { TextRules } from '../../../channels/port.ts';

/** Marks a file whose content is the text of its part, where other files have their id. */
export const restOfAnswer = 'text';

/** Marks a part that is sent again although it may have arrived. */
export const markRepeat = (text: string, { isLine }: TextRules): string => `(may be a repeat)${isLine ? ' ' : '\n\n'}${text}`;
/** Leaves space for that mark in a part. */
export const withMarkSpace = (rules: TextRules): TextRules => ({ ...rules, most: rules.most - 20 });
