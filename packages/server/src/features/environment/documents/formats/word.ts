import { requirePart } from './office.ts';
import type { Sink } from './sink.ts';
import { Table } from './table.ts';
import { readXml, type XmlHandlers } from './xml.ts';
import type { Zip } from './zip.ts';

/** DOCX: paragraphs, headings, lists, tables and footnotes; deleted and hidden text is left out. */
export async function readWord(zip: Zip, sink: Sink): Promise<void> {
  await readXml(requirePart(zip, 'word/document.xml'), createBody(sink));
  for (const notes of ['word/footnotes.xml', 'word/endnotes.xml']) {
    const pieces = zip.stream(notes);
    if (pieces === undefined) continue;
    sink.section(notes === 'word/footnotes.xml' ? 'Footnotes' : 'Endnotes');
    await readXml(pieces, createBody(sink));
  }
}

function createBody(sink: Sink): XmlHandlers {
  let text = '';
  let level = 0;
  let list: number | undefined;
  let isText = false;
  let isHidden = false;
  let skipped = 0;
  let depth = 0;
  let table: Table | undefined;
  let cells: string[] = [];
  let cell: string[] = [];

  function endParagraph(): void {
    const paragraph = text;
    text = '';
    if (depth > 0) {
      if (paragraph.trim() !== '') cell.push(paragraph.trim());
      return;
    }
    if (level > 0 && paragraph.trim() !== '') {
      if (level <= 2) sink.section(paragraph);
      sink.paragraph(`${'#'.repeat(level)} ${paragraph.trim()}`);
    } else if (list !== undefined && paragraph.trim() !== '') {
      sink.add(`${'  '.repeat(list)}- ${paragraph.trim()}\n`);
    } else sink.paragraph(paragraph);
  }

  return {
    open(name, attribute) {
      const isOn = () => !/^(?:0|false|off)$/.test(attribute('val') ?? '1');
      if (name === 'Fallback') skipped += 1;
      if (name === 'p') {
        [level, list] = [0, undefined];
      } else if (name === 'r') isHidden = false;
      else if (name === 'vanish') isHidden ||= isOn();
      else if (name === 'pStyle') level = headingLevel(attribute('val') ?? '');
      else if (name === 'numPr') list ??= 0;
      else if (name === 'ilvl') list = Math.min(8, Math.max(0, Number(attribute('val')) || 0));
      else if (name === 't') isText = !isHidden && skipped === 0;
      else if (name === 'tab' && depth === 0) text += '\t';
      else if (name === 'br' || name === 'cr') text += '\n';
      else if (name === 'tbl') {
        depth += 1;
        if (depth === 1) table = new Table(sink);
      } else if (name === 'tr' && depth === 1) cells = [];
      else if (name === 'tc' && depth === 1) cell = [];
    },
    close(name) {
      if (name === 'Fallback') skipped -= 1;
      else if (name === 't') isText = false;
      else if (name === 'p') endParagraph();
      else if (name === 'tc' && depth === 1) cells.push(cell.join(' '));
      else if (name === 'tr' && depth === 1) table?.row(cells);
      else if (name === 'tbl') {
        depth -= 1;
        if (depth === 0) table?.end();
      }
    },
    text(piece) {
      if (isText) text += piece;
    },
  };
}

function headingLevel(style: string): number {
  if (/^title$/i.test(style)) return 1;
  const level = /^(?:heading|berschrift|titre|titolo|kop)\s?([1-9])$/i.exec(style)?.[1];
  return Math.min(6, Number(level ?? 0));
}
