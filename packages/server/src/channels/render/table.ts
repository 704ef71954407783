/** Wider columns are not padded. */
const widest = 40;

/** Returns a table as lines for a fixed-width font, its header first. */
export function alignedTable(cells: readonly (readonly string[])[]): string {
  const columns = Math.max(...cells.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.min(widest, Math.max(1, ...cells.slice(0, 1_000).map((row) => lengthOf(row[column] ?? '')))),
  );
  const lines = cells.map((row) =>
    row
      .map((cell, column) => padded(cell, widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const rule = widths.map((width) => '-'.repeat(width)).join('  ');
  return [lines[0], rule, ...lines.slice(1)].join('\n');
}

const lengthOf = (text: string): number => [...text].length;
const padded = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - lengthOf(text)));
