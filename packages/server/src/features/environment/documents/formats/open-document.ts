import { requirePart } from './office.ts';
import { Refused, type Sink } from './sink.ts';
import { maxColumns, Table } from './table.ts';
import { readXml } from './xml.ts';
import type { Zip } from './zip.ts';

/** ODT, ODS and ODP: one format for texts, sheets and slides. */
export async function readOpenDocument(zip: Zip, sink: Sink): Promise<void> {
  if ((await zip.read('META-INF/manifest.xml'))?.includes('encryption-data') === true)
    throw new Refused('encrypted', 'is encrypted: remove its password first');
  let text = '';
  let level = 0;
  let depth = 0;
  let lists = 0;
  let skipped = 0;
  let isSheet = false;
  let pages = 0;
  let paragraphs = 0;
  let table: Table | undefined;
  let cells: string[] = [];
  let cell: string[] = [];
  let [repeatCell, repeatRow] = [1, 1];

  function endParagraph(): void {
    const paragraph = text.trim();
    text = '';
    if (paragraph === '') return;
    if (depth > 0) cell.push(paragraph);
    else if (level > 0) {
      if (level <= 2) sink.section(paragraph);
      sink.paragraph(`${'#'.repeat(level)} ${paragraph}`);
    } else if (lists > 0) sink.add(`${'  '.repeat(Math.min(8, lists - 1))}- ${paragraph}\n`);
    else sink.paragraph(paragraph);
  }

  await readXml(requirePart(zip, 'content.xml'), {
    open(name, attribute) {
      if (name === 'annotation' || name === 'tracked-changes') skipped += 1;
      if (skipped > 0) return;
      if (name === 'spreadsheet') isSheet = true;
      else if (name === 'page') {
        pages += 1;
        sink.page(`Slide ${pages}`);
      } else if (name === 'p' || name === 'h') {
        paragraphs += 1;
        level = name === 'h' ? Math.min(6, Math.max(1, Number(attribute('outline-level')) || 1)) : 0;
      } else if (name === 's') text += ' '.repeat(Math.min(100, Math.max(1, Number(attribute('c')) || 1)));
      else if (name === 'tab') text += '\t';
      else if (name === 'line-break') text += '\n';
      else if (name === 'list') lists += 1;
      else if (name === 'table') {
        depth += 1;
        if (depth > 1) return;
        if (isSheet) sink.page(`Sheet ${attribute('name') ?? ''}`);
        table = new Table(sink);
      } else if (depth === 1 && name === 'table-row') {
        cells = [];
        repeatRow = countOf(attribute('number-rows-repeated'), 100);
      } else if (depth === 1 && (name === 'table-cell' || name === 'covered-table-cell')) {
        cell = [];
        repeatCell = countOf(attribute('number-columns-repeated'), maxColumns);
      }
    },
    close(name) {
      if (name === 'annotation' || name === 'tracked-changes') skipped -= 1;
      else if (skipped > 0) return;
      else if (name === 'p' || name === 'h') {
        paragraphs -= 1;
        endParagraph();
      } else if (name === 'list') lists -= 1;
      else if (name === 'table') {
        depth -= 1;
        if (depth === 0) table?.end();
      } else if (depth === 1 && (name === 'table-cell' || name === 'covered-table-cell')) {
        for (let each = 0; each < repeatCell && cells.length < maxColumns; each += 1) cells.push(cell.join(' '));
      } else if (depth === 1 && name === 'table-row') {
        const isEmpty = cells.every((shown) => shown === '');
        for (let each = 0; each < (isEmpty ? 1 : repeatRow); each += 1) table?.row(cells);
      }
    },
    text(piece) {
      if (skipped === 0 && paragraphs > 0) text += piece.replace(/\s+/g, ' ');
    },
  });
}

/** A single empty cell often claims to repeat to the end of the sheet. */
function countOf(text: string | undefined, most: number): number {
  return Math.min(most, Math.max(1, Number(text) || 1));
}
