import { readRelations, requirePart } from './office.ts';
import type { Sink } from './sink.ts';
import { Table } from './table.ts';
import { readXml } from './xml.ts';
import type { Zip } from './zip.ts';

const presentation = 'ppt/presentation.xml';

/** PPTX: each slide with its tables, then its notes. */
export async function readSlides(zip: Zip, sink: Sink): Promise<void> {
  const ids: string[] = [];
  await readXml(requirePart(zip, presentation), {
    open(name, attribute) {
      const id = name === 'sldId' ? (attribute('id') ?? '') : '';
      if (id !== '' && ids.length < 50_000) ids.push(id);
    },
  });
  const relations = await readRelations(zip, presentation);
  const slides = [...relations.values()].filter(({ type }) => type.endsWith('/slide'));
  // `sldId` has two attributes of the local name "id": a number, and the relation.
  const ordered = ids.flatMap((id) => relations.get(id) ?? []);
  for (const [index, { target }] of (ordered.length === 0 ? slides : ordered).entries()) {
    const pieces = zip.stream(target);
    if (pieces === undefined) continue;
    sink.page(`Slide ${index + 1}`);
    await readShapes(pieces, sink);
    const notes = [...(await readRelations(zip, target)).values()].find(({ type }) => type.endsWith('/notesSlide'));
    const noted = notes === undefined ? undefined : zip.stream(notes.target);
    if (noted === undefined) continue;
    sink.add('Notes: ');
    await readShapes(noted, sink);
  }
}

async function readShapes(pieces: AsyncIterable<Buffer>, sink: Sink): Promise<void> {
  let text = '';
  let isText = false;
  let table: Table | undefined;
  let cells: string[] = [];
  let cell: string[] = [];
  await readXml(pieces, {
    open(name) {
      if (name === 't') isText = true;
      else if (name === 'br') text += '\n';
      else if (name === 'tbl') table = new Table(sink);
      else if (name === 'tr') cells = [];
      else if (name === 'tc') cell = [];
    },
    close(name) {
      if (name === 't') isText = false;
      else if (name === 'p') {
        if (table === undefined) sink.paragraph(text);
        else if (text !== '') cell.push(text);
        text = '';
      } else if (name === 'tc') cells.push(cell.join(' '));
      else if (name === 'tr') table?.row(cells);
      else if (name === 'tbl') {
        table?.end();
        table = undefined;
      }
    },
    text(piece) {
      if (isText) text += piece;
    },
  });
}
