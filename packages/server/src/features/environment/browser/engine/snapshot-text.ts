/** A reference in a snapshot, with what it names. */
export interface Reference {
  readonly role: string;
  readonly name?: string;
  /** Number among those of the same role and name, from 0; absent for the only one. */
  readonly nth?: number;
}

export interface SnapshotText {
  readonly text: string;
  readonly refs: Readonly<Record<string, Reference>>;
  readonly isTruncated: boolean;
  readonly stats: { readonly lines: number; readonly chars: number; readonly refs: number; readonly interactive: number };
}

interface Line {
  readonly depth: number;
  readonly text: string;
  readonly role: string;
  readonly name: string | undefined;
  readonly ref: string | undefined;
  readonly isInteractive: boolean;
}

const interactive = new Set(
  'button,checkbox,combobox,gridcell,link,listbox,menuitem,menuitemcheckbox,menuitemradio,option,radio,searchbox,slider,spinbutton,switch,tab,textbox,treeitem'.split(
    ',',
  ),
);
const structural = new Set(['generic', 'group', 'list', 'none', 'presentation', 'rowgroup', 'table', 'grid', 'row', 'document', 'region', 'article']);

/** Shortens the text of an accessibility tree; lines are kept whole. */
export function shortenSnapshot(
  whole: string,
  {
    interactive: onlyInteractive = false,
    compact = false,
    maxChars,
  }: { readonly interactive?: boolean; readonly compact?: boolean; readonly maxChars: number },
): SnapshotText {
  const parsed = whole.split('\n').flatMap(parseLine);
  const lines = onlyInteractive
    ? parsed.filter(({ isInteractive }) => isInteractive).map(({ text, ...line }) => ({ ...line, text: text.trimStart().replace(/:$/, '') }))
    : compact
      ? compacted(parsed)
      : parsed;
  const shown: Line[] = [];
  let chars = 0;
  for (const line of lines) {
    if (chars + line.text.length + 1 > maxChars) break;
    chars += line.text.length + 1;
    shown.push(line);
  }
  const refs = numbered(shown);
  return {
    text: shown.map(({ text }) => text).join('\n'),
    refs,
    isTruncated: shown.length < lines.length,
    stats: {
      lines: shown.length,
      chars: Math.max(0, chars - 1),
      refs: Object.keys(refs).length,
      interactive: shown.filter(({ isInteractive }) => isInteractive).length,
    },
  };
}

function parseLine(text: string): readonly Line[] {
  const found = /^( *)- (?:'?)([\w/-]+)(?: ("(?:[^"\\]|\\.)*"))?/.exec(text);
  if (found === null)
    return text.trim() === '' ? [] : [{ depth: indentOf(text), text, role: 'text', name: undefined, ref: undefined, isInteractive: false }];
  const [, indent = '', role = '', quoted] = found;
  const ref = /\[ref=((?:f\d+)?e\d+)\]/.exec(text)?.[1];
  const isInteractive = ref !== undefined && (interactive.has(role) || text.includes('[cursor=pointer]'));
  return [{ depth: indent.length, text, role, name: unquoted(quoted), ref, isInteractive }];
}

const indentOf = (text: string): number => text.length - text.trimStart().length;

function unquoted(quoted: string | undefined): string | undefined {
  if (quoted === undefined) return undefined;
  return quoted.slice(1, -1).replaceAll(/\\(.)/g, '$1').slice(0, 500);
}

/** Leaves out structural nodes without a name; what they contain moves up. */
function compacted(lines: readonly Line[]): Line[] {
  const kept: Line[] = [];
  const left: number[] = [];
  for (const line of lines) {
    while (left.length > 0 && (left.at(-1) ?? 0) >= line.depth) left.pop();
    const depth = line.depth - 2 * left.length;
    if (structural.has(line.role) && line.name === undefined && !line.isInteractive && line.text.trimEnd().endsWith(':')) {
      left.push(line.depth);
      continue;
    }
    kept.push({ ...line, depth, text: `${' '.repeat(Math.max(0, depth))}${line.text.trimStart()}` });
  }
  return kept;
}

function numbered(lines: readonly Line[]): Record<string, Reference> {
  const counts = new Map<string, number>();
  const keyOf = ({ role, name }: Line) => `${role}\0${name ?? ''}`;
  for (const line of lines) if (line.ref !== undefined) counts.set(keyOf(line), (counts.get(keyOf(line)) ?? 0) + 1);
  const seen = new Map<string, number>();
  const refs: Record<string, Reference> = {};
  for (const line of lines) {
    if (line.ref === undefined) continue;
    const key = keyOf(line);
    const nth = seen.get(key) ?? 0;
    seen.set(key, nth + 1);
    refs[line.ref] = { role: line.role, ...(line.name !== undefined && { name: line.name }), ...((counts.get(key) ?? 0) > 1 && { nth }) };
  }
  return refs;
}
