import { crc32, deflateRawSync } from 'node:zlib';

export interface ZipPart {
  readonly name: string;
  readonly content: string | Buffer;
  readonly flags?: number;
  readonly method?: number;
  /** Written instead of the true size. */
  readonly claimedSize?: number;
}

/** Makes a zip container; flags, methods and sizes may be wrong on purpose. */
export function makeZip(parts: readonly ZipPart[]): Buffer {
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, content, flags = 0, method = 8, claimedSize } of parts) {
    const plain = Buffer.from(content);
    const packed = method === 8 ? deflateRawSync(plain) : plain;
    const encoded = Buffer.from(name);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(flags, 2);
    common.writeUInt16LE(method, 4);
    common.writeUInt32LE(crc32(plain), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(claimedSize ?? plain.length, 18);
    common.writeUInt16LE(encoded.length, 22);
    const local = Buffer.concat([Buffer.from('PK\u0003\u0004', 'latin1'), common, encoded, packed]);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from('PK\u0001\u0002\u0014\u0000', 'latin1'), common, place, encoded]));
    bodies.push(local);
    offset += local.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\u0005\u0006', 0, 'latin1');
  end.writeUInt16LE(parts.length, 8);
  end.writeUInt16LE(parts.length, 10);
  end.writeUInt32LE(listed.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...bodies, listed, end]);
}

/** Makes a tar archive of empty or short files. */
export function makeTar(files: readonly { readonly name: string; readonly content?: string; readonly kind?: string }[]): Buffer {
  const blocks = files.flatMap(({ name, content = '', kind = '0' }) => {
    const header = Buffer.alloc(512);
    header.write(name, 0, 100);
    header.write(Buffer.byteLength(content).toString(8).padStart(11, '0'), 124);
    header.write(kind, 156);
    header.write('ustar\u000000', 257, 'latin1');
    const body = Buffer.alloc(Math.ceil(Buffer.byteLength(content) / 512) * 512);
    body.write(content);
    return [header, body];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

/** Makes a PDF with a line of text on each page; `trailer` is added to its trailer. */
export function makePdf(pages: readonly string[], trailer = ''): Buffer {
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Count ${pages.length} /Kids [${pages.map((_, index) => `${4 + index * 2} 0 R`).join(' ')}] >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ...pages.flatMap((text, index) => {
      const stream = text === '' ? '' : `BT /F1 12 Tf 72 720 Td (${text.replace(/[\\()]/g, '\\$&')}) Tj ET`;
      return [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${5 + index * 2} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`,
        `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
      ];
    }),
  ];
  return pdfOf(objects, trailer);
}

/** Makes a PDF of one page with these bytes as its content. */
export function pdfOfStream(content: Buffer, filter: string): Buffer {
  return pdfOf(
    [
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Count 1 /Kids [3 0 R] >>',
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R >>',
      `<< /Length ${content.length} ${filter} >>\nstream\n${content.toString('latin1')}\nendstream`,
    ],
    '',
  );
}

function pdfOf(objects: readonly string[], trailer: string): Buffer {
  let text = '%PDF-1.7\n';
  const offsets: number[] = [];
  for (const [index, object] of objects.entries()) {
    offsets.push(text.length);
    text += `${index + 1} 0 obj\n${object}\nendobj\n`;
  }
  const start = text.length;
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.map((at) => `${String(at).padStart(10, '0')} 00000 n \n`).join('')}`;
  text += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${start}\n%%EOF\n`;
  return Buffer.from(text, 'latin1');
}

/** Makes a PDF of scanned pages: each has a grey picture of this size, and no text. */
export function makeScannedPdf(pages: number, { width, height }: { readonly width: number; readonly height: number }): Buffer {
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Count ${pages} /Kids [${Array.from({ length: pages }, (_, index) => `${3 + index * 3} 0 R`).join(' ')}] >>`,
    ...Array.from({ length: pages }, (_, index) => {
      const first = 3 + index * 3;
      const stream = 'q 612 0 0 792 0 0 cm /Im Do Q';
      const data = String.fromCharCode(40 + index).repeat(width * height);
      return [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${first + 1} 0 R /Resources << /XObject << /Im ${first + 2} 0 R >> >> >>`,
        `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
        `<< /Type /XObject /Subtype /Image /Width ${width} /Height ${height} /ColorSpace /DeviceGray /BitsPerComponent 8 /Length ${data.length} >>\nstream\n${data}\nendstream`,
      ];
    }).flat(),
  ];
  return pdfOf(objects, '');
}

export const wordOf = (body: string, more: readonly ZipPart[] = []): Buffer =>
  makeZip([{ name: '[Content_Types].xml', content: '<Types/>' }, { name: 'word/document.xml', content: wordXml(body) }, ...more]);
export const wordXml = (body: string): string => `<?xml version="1.0"?><w:document xmlns:w="w"><w:body>${body}</w:body></w:document>`;
export const paragraph = (text: string, style = ''): string =>
  `<w:p>${style === '' ? '' : `<w:pPr><w:pStyle w:val="${style}"/></w:pPr>`}<w:r><w:t xml:space="preserve">${text}</w:t></w:r></w:p>`;

const relations = (items: readonly (readonly [id: string, target: string, type: string])[]): string =>
  `<Relationships>${items.map(([id, target, type]) => `<Relationship Id="${id}" Type="http://x/${type}" Target="${target}"/>`).join('')}</Relationships>`;

/** Makes a workbook from the XML of the rows of each sheet. */
export function workbookOf(sheets: Readonly<Record<string, string>>, more: readonly ZipPart[] = []): Buffer {
  const names = Object.keys(sheets);
  return makeZip([
    {
      name: 'xl/workbook.xml',
      content: `<workbook xmlns:r="r"><sheets>${names.map((name, at) => `<sheet name="${name}" sheetId="${at + 1}" r:id="rId${at + 1}"/>`).join('')}</sheets></workbook>`,
    },
    { name: 'xl/_rels/workbook.xml.rels', content: relations(names.map((_, at) => [`rId${at + 1}`, `worksheets/sheet${at + 1}.xml`, 'worksheet'])) },
    ...names.map((name, at) => ({
      name: `xl/worksheets/sheet${at + 1}.xml`,
      content: `<worksheet><sheetData>${sheets[name] ?? ''}</sheetData></worksheet>`,
    })),
    ...more,
  ]);
}

/** Makes a presentation from the XML of the shapes of each slide. */
export function slidesOf(slides: readonly string[]): Buffer {
  return makeZip([
    {
      name: 'ppt/presentation.xml',
      content: `<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst>${slides.map((_, at) => `<p:sldId id="${256 + at}" r:id="rId${at + 1}"/>`).join('')}</p:sldIdLst></p:presentation>`,
    },
    { name: 'ppt/_rels/presentation.xml.rels', content: relations(slides.map((_, at) => [`rId${at + 1}`, `slides/slide${at + 1}.xml`, 'slide'])) },
    ...slides.map((shapes, at) => ({ name: `ppt/slides/slide${at + 1}.xml`, content: `<p:sld xmlns:p="p" xmlns:a="a">${shapes}</p:sld>` })),
  ]);
}

export function openDocumentOf(kind: 'text' | 'spreadsheet' | 'presentation', body: string, manifest = '<manifest/>'): Buffer {
  return makeZip([
    { name: 'mimetype', content: `application/vnd.oasis.opendocument.${kind}`, method: 0 },
    { name: 'META-INF/manifest.xml', content: manifest },
    {
      name: 'content.xml',
      content: `<o:document-content xmlns:o="o" xmlns:text="t" xmlns:table="b" xmlns:draw="d" xmlns:xlink="x"><o:body><o:${kind}>${body}</o:${kind}></o:body></o:document-content>`,
    },
  ]);
}

export function epubOf(chapters: readonly string[], more: readonly ZipPart[] = []): Buffer {
  const ids = chapters.map((_, at) => `c${at + 1}`);
  return makeZip([
    { name: 'mimetype', content: 'application/epub+zip', method: 0 },
    { name: 'META-INF/container.xml', content: '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>' },
    {
      name: 'OEBPS/book.opf',
      content: `<package><manifest>${ids.map((id) => `<item id="${id}" href="text/${id}.xhtml"/>`).join('')}</manifest><spine>${ids.map((id) => `<itemref idref="${id}"/>`).join('')}</spine></package>`,
    },
    ...chapters.map((body, at) => ({ name: `OEBPS/text/${ids[at] ?? ''}.xhtml`, content: `<html><body>${body}</body></html>` })),
    ...more,
  ]);
}
