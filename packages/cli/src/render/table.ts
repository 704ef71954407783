import { plainText } from './plain.ts';

export type Cell = string | number | boolean | null | undefined;

/** Renders columns as wide as their widest cells, two spaces apart, with headings in capitals. */
export function renderTable(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return renderColumns([head.map((name) => name.toUpperCase()), ...rows]);
}

/** Renders rows without a heading, such as name and value. */
export function renderColumns(rows: readonly (readonly Cell[])[]): string {
  const texts = rows.map((row) => row.map(cellText));
  const widths: number[] = [];
  for (const row of texts) row.forEach((text, column) => (widths[column] = Math.max(widths[column] ?? 0, text.length)));
  return texts
    .map((row) =>
      row
        .map((text, column) => text.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function cellText(cell: Cell): string {
  return cell === null || cell === undefined ? '-' : plainText(String(cell));
}

/** Formats a duration as `3 d 4 h`, `5 min` or `12 s`. */
export function renderDuration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Formats bytes in powers of 1024 with at most three digits. */
export function renderBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export function renderTime(epochMs: number | undefined): string {
  return epochMs === undefined ? '-' : `${new Date(epochMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
