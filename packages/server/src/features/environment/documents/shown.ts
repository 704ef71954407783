import type { DocumentPart, DocumentText } from './api.ts';

/** Joins parts to a text; labels that are not already the first line become headings. */
export function joinParts({ parts }: Pick<DocumentText, 'parts'>): string {
  return parts.map(printPart).join('\n\n');
}

export function printPart({ label, text }: DocumentPart): string {
  if (
    label === '' ||
    text
      .slice(0, 300)
      .split('\n', 1)[0]
      ?.replace(/^#+\s*/, '')
      .startsWith(label.slice(0, 100)) === true
  )
    return text;
  return `## ${label}\n\n${text}`;
}

/** Facts that precede the text of a document. */
export function printFacts({ mimeType, parts, truncated, pageCount, notes }: DocumentText): string {
  const facts = [`Type: ${mimeType}`, `Parts: ${parts.length}`];
  if (pageCount !== undefined) facts.push(`Pages: ${pageCount}`);
  if (truncated) facts.push('Cut: the document is longer than the limit');
  return [facts.join('; '), ...notes.map((note) => `Note: ${note}`)].join('\n');
}

const maxOutline = 200;

/** Lists the parts by number, to be read one after the other. */
export function printOutline(parts: readonly DocumentPart[]): string {
  const lines = parts
    .slice(0, maxOutline)
    .map(({ label, text }, index) => `${index + 1}. ${label === '' ? '(beginning)' : label} (${text.length} characters)`);
  if (parts.length > maxOutline) lines.push(`… and ${parts.length - maxOutline} more parts, up to ${parts.length}`);
  return lines.join('\n');
}

/** Returns parts from `first` on (counted from 1), as many as fit, and where to continue. */
export function takeParts(
  parts: readonly DocumentPart[],
  first: number,
  last: number,
  maxCharacters: number,
): { text: string; next: number | undefined } {
  const shown: string[] = [];
  let left = maxCharacters;
  for (let number = first; number <= Math.min(last, parts.length); number += 1) {
    const part = parts[number - 1];
    if (part === undefined) break;
    const printed = printPart(part);
    if (printed.length > left && shown.length > 0) return { text: shown.join('\n\n'), next: number };
    shown.push(`[part ${number}]\n${printed}`);
    left -= printed.length;
  }
  return { text: shown.join('\n\n'), next: undefined };
}

/** Characters up to which a document is shown whole. */
const maxWhole = 24_000;
const maxBeginning = 8000;

/** Returns the text, of a long document the outline and the beginning; `more`: where the next part is read. */
export function showDocument(document: DocumentText, more?: string): string {
  const { parts } = document;
  if (parts.length === 0) return '(no text)';
  const whole = joinParts(document);
  if (whole.length <= maxWhole) return whole;
  const beginning = withNext(takeParts(parts, 1, parts.length, maxBeginning));
  const rest = more === undefined ? '' : `\n\n[The whole document has ${whole.length} characters; more of it: ${more}]`;
  return `${printOutline(parts)}\n\n${beginning}${rest}`;
}

/** Names the part that follows. */
export function withNext({ text, next }: { readonly text: string; readonly next: number | undefined }): string {
  return next === undefined ? text : `${text}\n\n[continue with part ${next}]`;
}

const around = 200;
const maxHits = 20;

/** Finds parts that contain the terms: those with most different terms first. */
export function findInParts(parts: readonly DocumentPart[], query: string): string {
  const terms = [
    ...new Set(
      query
        .toLowerCase()
        .split(/\s+/)
        .filter((term) => term !== ''),
    ),
  ].slice(0, 20);
  const hits = parts.flatMap((part, index) => {
    const text = `${part.label}\n${part.text}`;
    const folded = text.toLowerCase();
    const offsets = terms.map((term) => folded.indexOf(term)).filter((at) => at !== -1);
    return offsets.length === 0 ? [] : [{ index, part, text, found: offsets.length, at: Math.min(...offsets) }];
  });
  if (hits.length === 0) return 'No part contains any of these terms.';
  const best = hits.toSorted((one, other) => other.found - one.found || one.index - other.index).slice(0, maxHits);
  const lines = best.map(({ index, part, text, at }) => {
    const excerpt = text
      .slice(Math.max(0, at - around), at + around)
      .toWellFormed()
      .replace(/\s+/g, ' ')
      .trim();
    return `[part ${index + 1}${part.label === '' ? '' : `, ${part.label}`}] … ${excerpt} …`;
  });
  if (hits.length > maxHits) lines.push(`[${hits.length - maxHits} more parts]`);
  return lines.join('\n');
}
