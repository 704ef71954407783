import stringWidth from 'fast-string-width';
import { currentLook, type Look } from './look.ts';
import type { Style } from './paint.ts';
import { plainText, shorten } from './plain.ts';
import { shortId } from './short-id.ts';

export type Cell = string | number | boolean | null | undefined;

const gap = 2;
/** Columns are not made narrower than this. */
const leastWidth = 6;

/**
 * Renders columns as wide as their widest cells, two spaces apart, with headings in capitals. On a terminal, ids are short,
 * times relative and states coloured, and the longest texts are cut so that each row is one line.
 */
export function renderTable(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const names = head.map((name) => name.toUpperCase());
  const look = currentLook();
  return look === undefined ? renderColumns([names, ...rows]) : renderFitted(names, rows, look);
}

function renderFitted(names: readonly string[], rows: readonly (readonly Cell[])[], look: Look): string {
  const texts = rows.map((row) => row.map((cell) => relativeTime(shortId(cellText(cell)), look.now)));
  const widths = fittingWidths([names, ...texts], look.width);
  const states = names.flatMap((name, column) => (stateColumns.has(name) ? [column] : []));
  return [
    joinRow(names, widths, (text) => look.paint('bold', text)),
    ...texts.map((row) =>
      joinRow(row, widths, (text, column) => {
        const style = states.includes(column) ? styleOf(text) : undefined;
        return style === undefined ? text : look.paint(style, text);
      }),
    ),
  ].join('\n');
}

/** Narrows the widest columns until a row fits. */
function fittingWidths(rows: readonly (readonly string[])[], width: number): number[] {
  const widths: number[] = [];
  for (const row of rows) row.forEach((text, column) => (widths[column] = Math.max(widths[column] ?? 0, stringWidth(text))));
  const available = width - gap * (widths.length - 1);
  let total = widths.reduce((sum, one) => sum + one, 0);
  while (total > available) {
    const widest = Math.max(...widths);
    if (widest <= leastWidth) break;
    widths[widths.lastIndexOf(widest)] = widest - 1;
    total -= 1;
  }
  return widths;
}

function joinRow(row: readonly string[], widths: readonly number[], styled: (text: string, column: number) => string): string {
  return row
    .map((text, column) => {
      const width = widths[column] ?? 0;
      const shown = cut(text, width);
      const padding = column === row.length - 1 ? '' : ' '.repeat(width - stringWidth(shown));
      return styled(shown, column) + padding;
    })
    .join(' '.repeat(gap))
    .trimEnd();
}

function cut(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  let shown = shorten(text, width);
  while (stringWidth(shown) > width) shown = shorten(shown, Array.from(shown).length - 1);
  return shown;
}

const stateColumns: ReadonlySet<string> = new Set(['STATE', 'STATUS', 'RESULT', 'OUTCOME', 'VERDICT', 'LAST RUN']);
const styles: readonly (readonly [words: RegExp, style: Style])[] = [
  [/^(?:failed|error|denied|refused|expired|dead|killed|unreachable|lost|rejected|critical|down|broken)/i, 'red'],
  [/^(?:wait|pending|queued|paused|held|suspended|unknown|cooling|degraded|warn|interrupted|aborted|disabled|retry)/i, 'yellow'],
  [/^(?:running|active|connecting|starting|sending|in progress)/i, 'cyan'],
  [/^(?:ok|done|completed?|success|succeeded|enabled|connected|sent|delivered|approved|scheduled|loaded|ready|available)/i, 'green'],
];

function styleOf(text: string): Style | undefined {
  return styles.find(([words]) => words.test(text))?.[1];
}

/** A cell that is nothing but a time of `renderTime` becomes relative. */
function relativeTime(text: string, now: number): string {
  if (!/^\d{4}-\d\d-\d\d \d\d:\d\d UTC$/.test(text)) return text;
  const at = Date.parse(`${text.slice(0, 16).replace(' ', 'T')}Z`);
  // The minute of now has begun before.
  return Math.abs(now - at) < 60_000 ? 'just now' : renderRelative(at, now);
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

/** Formats a time as people say it: `5 min ago`; older ones as a date. */
export function renderRelative(epochMs: number, now: number): string {
  const ms = now - epochMs;
  if (ms < 0) return `in ${withoutMinutes(renderDuration(-ms))}`;
  if (ms < 10_000) return 'just now';
  const days = Math.floor(ms / 86_400_000);
  if (days < 1) return `${withoutMinutes(renderDuration(ms))} ago`;
  return days < 14 ? `${days} ${days === 1 ? 'day' : 'days'} ago` : new Date(epochMs).toISOString().slice(0, 10);
}

const withoutMinutes = (duration: string) => duration.replace(/(\d+ h) \d+ min/, '$1');
