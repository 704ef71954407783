import type { DocumentText } from '../../environment/documents/api.ts';

/** Characters of a passage: long enough to answer a question, short enough to be one thought. */
const maxPassage = 1_200;
/** Passages of one file; a document is cut by `documents.maxCharacters` before that. */
const maxPassages = 2_000;
const maxLabel = 200;

export interface Passage {
  readonly part: number;
  readonly label: string;
  readonly text: string;
}

/** Divides a document into passages that never cross a part, so that each has one page to cite. */
export function toPassages({ parts }: Pick<DocumentText, 'parts'>): Passage[] {
  const passages: Passage[] = [];
  for (const [index, { label, text }] of parts.entries()) {
    for (const divided of divide(text)) {
      if (passages.length === maxPassages) return passages;
      passages.push({ part: index + 1, label: label.replace(/\s+/g, ' ').slice(0, maxLabel).toWellFormed(), text: divided });
    }
  }
  return passages;
}

/** Divides a text at paragraphs, then lines, then sentences, then anywhere. */
function divide(text: string): string[] {
  const found: string[] = [];
  let rest = text.trim();
  while (rest.length > maxPassage) {
    const window = rest.slice(0, maxPassage);
    const at = [window.lastIndexOf('\n\n'), window.lastIndexOf('\n'), window.lastIndexOf('. ') + 1, window.lastIndexOf(' ')].find(
      (place) => place > maxPassage / 3,
    );
    const taken = rest.slice(0, at ?? maxPassage).toWellFormed();
    found.push(taken.trim());
    rest = rest.slice(at ?? maxPassage).trimStart();
  }
  if (rest !== '') found.push(rest.toWellFormed());
  return found;
}

/** The first line of an entry names its file, so that the name is found as well; it is taken off when the text is shown. */
export const withHead = (path: string, { label, text }: Passage): string => `${headOf(path, label)}\n${text}`;
export const withoutHead = (content: string): string => content.slice(content.indexOf('\n') + 1);

function headOf(path: string, label: string): string {
  return [path.normalize('NFC').replace(/\s+/g, ' '), label].filter((part) => part !== '').join(', ');
}
