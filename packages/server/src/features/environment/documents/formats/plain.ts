import type { Sink } from './sink.ts';
import { Table } from './table.ts';

/** Text and Markdown: a part for each heading of the first two levels. */
export function readPlain(text: string, sink: Sink, hasHeadings: boolean): void {
  let isCode = false;
  for (let at = 0; at < text.length;) {
    const end = text.indexOf('\n', at);
    const line = text.slice(at, end === -1 ? text.length : end + 1);
    at += line.length;
    if (/^\s{0,3}(?:```|~~~)/.test(line)) isCode = !isCode;
    const heading = hasHeadings && !isCode ? /^#{1,2}\s+(\S.*)$/.exec(line.trimEnd())?.[1] : undefined;
    if (heading !== undefined) sink.section(heading);
    sink.add(line);
  }
}

/** CSV (RFC 4180) with commas, semicolons or tabs, as a table. */
export function readCsv(text: string, sink: Sink, separator = separatorOf(text)): void {
  const table = new Table(sink);
  let cells: string[] = [];
  let cell = '';
  for (let at = 0; at < text.length;) {
    if (text[at] === '"' && cell === '') {
      at += 1;
      for (;;) {
        const end = text.indexOf('"', at);
        if (end === -1) {
          cell += text.slice(at);
          at = text.length;
          break;
        }
        cell += text.slice(at, end);
        at = end + 1;
        if (text[at] !== '"') break;
        cell += '"';
        at += 1;
      }
      continue;
    }
    const character = text[at] ?? '';
    at += 1;
    if (character === separator) {
      cells.push(cell);
      cell = '';
    } else if (character === '\n') {
      table.row([...cells, cell]);
      [cells, cell] = [[], ''];
    } else if (character !== '\r') cell += character;
  }
  table.row([...cells, cell]);
  table.end();
}

function separatorOf(text: string): string {
  const line = text.slice(0, 4096).split('\n', 1)[0] ?? '';
  const [separator = ','] = [',', ';', '\t'].toSorted((one, other) => line.split(other).length - line.split(one).length);
  return separator;
}
