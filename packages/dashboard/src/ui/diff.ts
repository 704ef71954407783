import { structuredPatch } from 'diff';

/** One line of a diff; line numbers start at 1 and are absent where the text has no such line. */
export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed';
  readonly text: string;
  readonly before: number | undefined;
  readonly after: number | undefined;
}

/** A group of changed lines with the context lines around it. */
export type Hunk = readonly DiffLine[];

const contextLines = 3;
/** Maximum number of changes for which the shortest edit script is computed: its cost grows quadratically. */
const maxEdits = 600;
/** Marks a last line that does not end. */
const noNewline = '\u2404';

/** Returns the line diff of two texts as hunks with three context lines; empty when the texts are equal. */
export function diffTexts(before: string, after: string): readonly Hunk[] {
  const patch = structuredPatch('', '', before, after, undefined, undefined, { context: contextLines, maxEditLength: maxEdits });
  return patch === undefined ? [replaceAll(before, after)] : patch.hunks.map(toHunk);
}

function toHunk({ oldStart, newStart, lines }: { readonly oldStart: number; readonly newStart: number; readonly lines: readonly string[] }): Hunk {
  const hunk: DiffLine[] = [];
  let before = oldStart;
  let after = newStart;
  for (const line of lines) {
    const text = line.slice(1);
    const last = hunk.at(-1);
    if (line.startsWith('-')) hunk.push({ kind: 'removed', text, before: before++, after: undefined });
    else if (line.startsWith('+')) hunk.push({ kind: 'added', text, before: undefined, after: after++ });
    else if (line.startsWith(' ')) hunk.push({ kind: 'same', text, before: before++, after: after++ });
    // The remaining kind of line says that the previous one has no newline.
    else if (last !== undefined) hunk[hunk.length - 1] = { ...last, text: last.text + noNewline };
  }
  return hunk;
}

/** Shows two very different texts as one replaced by the other. */
function replaceAll(before: string, after: string): Hunk {
  return [
    ...splitLines(before).map((text, at): DiffLine => ({ kind: 'removed', text, before: at + 1, after: undefined })),
    ...splitLines(after).map((text, at): DiffLine => ({ kind: 'added', text, before: undefined, after: at + 1 })),
  ];
}

function splitLines(text: string): readonly string[] {
  const lines = text.split('\n');
  const last = lines.pop() ?? '';
  return last === '' ? lines : [...lines, last + noNewline];
}
