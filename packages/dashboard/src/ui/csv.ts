import { saveBlob } from './save-json.ts';

export type CsvValue = string | number | boolean | null | undefined;

/** Formats rows as RFC 4180. A text that a spreadsheet would run as a formula begins with an apostrophe. */
export function toCsv(rows: readonly (readonly CsvValue[])[]): string {
  return rows.map((row) => `${row.map(toField).join(',')}\r\n`).join('');
}

/** Downloads rows as a CSV file; the first one has the headings. */
export function saveCsv(fileName: string, rows: readonly (readonly CsvValue[])[]): void {
  saveBlob(fileName, new Blob([toCsv(rows)], { type: 'text/csv;charset=utf-8' }));
}

function toField(value: CsvValue): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string') return String(value);
  const text = /^[=+\-@\t\r\n＝＋－＠]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
