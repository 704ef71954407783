import { boundArrays } from './bound-arrays.ts';
import { Full, Refused, type Sink } from './sink.ts';

/** Longest content of a page or font, unpacked. */
const maxStreamBytes = 25_165_824;

/** PDF: the text of each page, with its line breaks. */
export async function readPdf(bytes: Uint8Array, sink: Sink): Promise<void> {
  using arrays = boundArrays(Math.max(maxStreamBytes, bytes.byteLength));
  const refusalOf = (error: unknown) => toRefusal(error, arrays.refused);
  const { getDocumentProxy } = await import('unpdf');
  const document = await getDocumentProxy(new Uint8Array(bytes), {
    disableFontFace: true,
    useSystemFonts: false,
    maxImageSize: 1_000_000,
    verbosity: 0,
  }).catch((error: unknown) => Promise.reject(refusalOf(error)));
  sink.pageCount = document.numPages;
  const empty: number[] = [];
  try {
    for (let number = 1; number <= document.numPages; number += 1) {
      sink.page(`Page ${number}`);
      const before = sink.characters;
      const page = await document.getPage(number).catch((error: unknown) => Promise.reject(refusalOf(error)));
      const { items } = await page.getTextContent().catch((error: unknown) => Promise.reject(refusalOf(error)));
      sink.add(items.map((item) => ('str' in item ? `${item.str}${item.hasEOL ? '\n' : ''}` : '')).join(''));
      page.cleanup();
      if (sink.characters - before < 10) empty.push(number);
    }
  } finally {
    sink.scannedPages = empty;
    if (empty.length > 0) sink.note(withoutText(empty, document.numPages));
  }
}

function withoutText(pages: readonly number[], total: number): string {
  const named = pages.length === total ? 'No page' : pages.length === 1 ? `Page ${pages[0]}` : `Pages ${pages.slice(0, 50).join(', ')}`;
  const state = pages.length === total ? 'has more than a few characters' : `${pages.length === 1 ? 'has' : 'have'} no text, or a few characters`;
  return `${named} ${state}: probably scanned. A model that reads images can read the pages as pictures.`;
}

function toRefusal(error: unknown, isTooLarge: boolean): Error {
  if (error instanceof Refused || error instanceof Full) return error;
  if (isTooLarge) return new Refused('too_large', `unpacks to more than ${maxStreamBytes} bytes on a page`);
  const name = error instanceof Error ? error.name : '';
  if (name === 'PasswordException') return new Refused('encrypted', 'is encrypted: remove its password first');
  return new Refused('broken', 'is a broken PDF');
}
