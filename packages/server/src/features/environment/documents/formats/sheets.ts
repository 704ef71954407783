import { readRelations, requirePart } from './office.ts';
import type { Sink } from './sink.ts';
import { maxColumns, Table } from './table.ts';
import { readXml } from './xml.ts';
import type { Zip } from './zip.ts';

/** Texts that cells share, and that must be kept while sheets are read. */
const maxSharedCharacters = 8_388_608;
const maxSharedTexts = 250_000;
const tooMuchText = 'The workbook has too much text: some cells are empty here.';
const workbook = 'xl/workbook.xml';

/** XLSX: each sheet a table of the values that its reader sees. */
export async function readSheets(zip: Zip, sink: Sink): Promise<void> {
  const sheets: { name: string; id: string; isHidden: boolean }[] = [];
  let is1904 = false;
  await readXml(requirePart(zip, workbook), {
    open(name, attribute) {
      if (name === 'workbookPr') is1904 = /^(?:1|true)$/.test(attribute('date1904') ?? '');
      if (name !== 'sheet' || sheets.length >= 10_000) return;
      sheets.push({ name: attribute('name') ?? '', id: attribute('id') ?? '', isHidden: (attribute('state') ?? 'visible') !== 'visible' });
    },
  });
  const relations = await readRelations(zip, workbook);
  const shared = await readShared(zip, sink);
  const dates = await readDateStyles(zip);
  for (const { name, id, isHidden } of sheets) {
    const pieces = zip.stream(relations.get(id)?.target ?? '');
    // A sheet that is a chart has no cells.
    if (pieces === undefined) continue;
    sink.page(`Sheet ${name}${isHidden ? ' (hidden)' : ''}`);
    await readSheet(pieces, sink, { shared, dates, is1904 });
  }
}

interface Book {
  readonly shared: readonly string[];
  readonly dates: ReadonlySet<number>;
  readonly is1904: boolean;
}

async function readSheet(pieces: AsyncIterable<Buffer>, sink: Sink, book: Book): Promise<void> {
  const table = new Table(sink);
  let cells: string[] = [];
  let column = 0;
  let type = 'n';
  let style = 0;
  let value = '';
  let isValue = false;
  await readXml(pieces, {
    open(name, attribute) {
      if (name === 'row') [cells, column] = [[], 0];
      else if (name === 'c') {
        column = columnOf(attribute('r')) ?? column;
        [type, style, value] = [attribute('t') ?? 'n', Number(attribute('s') ?? 0), ''];
      } else if (name === 'v' || name === 't') isValue = true;
      else if (name === 'rPh') isValue = false;
    },
    close(name) {
      if (name === 'v' || name === 't') isValue = false;
      else if (name === 'c') {
        if (column < maxColumns) {
          while (cells.length < column) cells.push('');
          cells[column] = shownValue(value, type, style, book);
        }
        column += 1;
      } else if (name === 'row') table.row(cells);
    },
    text(piece) {
      if (isValue && value.length < 32_768) value += piece;
    },
  });
  table.end();
}

/** Returns the column of a cell reference such as "AB12", counted from 0. */
function columnOf(reference: string | undefined): number | undefined {
  const letters = /^([A-Z]{1,3})\d/.exec(reference ?? '')?.[1];
  if (letters === undefined) return undefined;
  return [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;
}

function shownValue(value: string, type: string, style: number, { shared, dates, is1904 }: Book): string {
  if (type === 's') return shared[Number(value)] ?? '';
  if (type === 'b') return value === '1' ? 'TRUE' : 'FALSE';
  if (type !== 'n' || value === '' || !dates.has(style)) return value;
  const days = Number(value);
  if (!Number.isFinite(days) || days < 0 || days > 2_958_466) return value;
  // Days count from 30 December 1899, or from 1 January 1904. Before March 1900 they are one off: Excel counts a leap day that never was.
  const sinceEpoch = days - (is1904 ? 24_107 : days < 60 ? 25_568 : 25_569);
  const at = new Date(Math.round(sinceEpoch * 86_400_000));
  const text = at.toISOString();
  if (days < 1) return text.slice(11, 19);
  return Number.isInteger(days) ? text.slice(0, 10) : text.slice(0, 19).replace('T', ' ');
}

async function readShared(zip: Zip, sink: Sink): Promise<readonly string[]> {
  const shared: string[] = [];
  const pieces = zip.stream('xl/sharedStrings.xml');
  if (pieces === undefined) return shared;
  let [text, isText, size, phonetic] = ['', false, 0, 0];
  await readXml(pieces, {
    open(name) {
      if (name === 'si') text = '';
      else if (name === 'rPh') phonetic += 1;
      else if (name === 't') isText = phonetic === 0;
    },
    close(name) {
      if (name === 't') isText = false;
      else if (name === 'rPh') phonetic -= 1;
      else if (name === 'si' && shared.length < maxSharedTexts) shared.push(text);
      else if (name === 'si') sink.note(tooMuchText);
    },
    text(piece) {
      if (!isText) return;
      size += piece.length;
      if (size <= maxSharedCharacters) text += piece;
      else sink.note(tooMuchText);
    },
  });
  return shared;
}

/** Returns the cell styles that show a number as a date or a time. */
async function readDateStyles(zip: Zip): Promise<ReadonlySet<number>> {
  const found = new Set<number>();
  const pieces = zip.stream('xl/styles.xml');
  if (pieces === undefined) return found;
  const custom = new Set<number>();
  let [isCell, index] = [false, 0];
  await readXml(pieces, {
    open(name, attribute) {
      if (name === 'numFmt') {
        const code = (attribute('formatCode') ?? '').replace(/"[^"]*"|\\.|\[[^\]]*\]/g, '');
        if (/[ymdhs]/i.test(code) && !/general/i.test(code)) custom.add(Number(attribute('numFmtId')));
      } else if (name === 'cellXfs') isCell = true;
      else if (name === 'xf' && isCell) {
        const format = Number(attribute('numFmtId') ?? 0);
        if ((format >= 14 && format <= 22) || (format >= 45 && format <= 47) || custom.has(format)) found.add(index);
        index += 1;
      }
    },
    close(name) {
      if (name === 'cellXfs') isCell = false;
    },
  });
  return found;
}
