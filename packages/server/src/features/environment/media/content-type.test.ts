import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createInspector, mediaType } from './content-type.ts';

async function typeOf(bytes: Uint8Array | string, declared?: string, fileName?: string, chunk = 7): Promise<string> {
  const inspector = createInspector();
  const buffer = Buffer.from(bytes);
  for (let at = 0; at < buffer.length; at += chunk) inspector.add(buffer.subarray(at, at + chunk));
  const { contentType, extension } = await inspector.decide(declared, fileName);
  return `${contentType} ${extension}`;
}

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

describe('the type of a media file', () => {
  it.each<[string, Uint8Array | string, string | undefined, string | undefined, string]>([
    ['PNG', hex('89504e47 0d0a1a0a 0000000d 49484452 00000001 00000001 08060000 00'), 'text/html', 'x.html', 'image/png png'],
    ['JPEG', hex('ffd8ffe0 00104a46 49460001 01000001 00010000'), undefined, undefined, 'image/jpeg jpg'],
    ['GIF', hex('47494638 39610100 01008000 00ffffff 00000021'), 'image/png', undefined, 'image/gif gif'],
    ['PDF, also when it is ASCII', '%PDF-1.7\n%%EOF\n', 'text/plain', 'x.txt', 'application/pdf pdf'],
    ['gzip', gzipSync('hello'), 'image/png', 'x.png', 'application/gzip gz'],
    ['MP3', Buffer.concat([hex('fffb9064'), Buffer.alloc(413), hex('fffb9064'), Buffer.alloc(413)]), 'text/html', undefined, 'audio/mpeg mp3'],
    [
      'MP3 behind a picture longer than what is looked at',
      Buffer.concat([Buffer.from('ID3'), hex('03000000 0a0000'), Buffer.alloc(170_000)]),
      undefined,
      undefined,
      'audio/mpeg mp3',
    ],
    [
      'old Office, as declared',
      Buffer.concat([hex('d0cf11e0 a1b11ae1'), Buffer.alloc(600)]),
      'application/msword',
      undefined,
      'application/msword bin',
    ],
    [
      'old Office, declared as something else',
      Buffer.concat([hex('d0cf11e0 a1b11ae1'), Buffer.alloc(600)]),
      'text/html',
      undefined,
      'application/x-cfb cfb',
    ],
    ['text that begins like a BMP', 'BM is what this text begins with', undefined, undefined, 'text/plain txt'],
    ['text that begins like a program', 'MZ is what this text begins with', 'text/markdown', undefined, 'text/markdown md'],
    ['text by its name', 'a,b\n1,2\n', undefined, 'table.CSV', 'text/csv csv'],
    ['text declared as JSON', '{"a":1}', 'application/json; charset=utf-8', 'x.txt', 'application/json json'],
    ['text declared as plain text with a better name', '# Title', 'text/plain', 'x.md', 'text/markdown md'],
    ['text as curl declares it', 'a: 1', 'application/x-www-form-urlencoded', 'x.yaml', 'application/yaml yaml'],
    ['text that says it is an image', 'hello', 'image/png', 'x.png', 'text/plain txt'],
    ['text of an unknown kind', 'hello', 'text/x-unknown', undefined, 'text/x-unknown txt'],
    ['a type with a line break', 'hello', 'text/x\r\nset-cookie: a', undefined, 'text/plain txt'],
    ['SVG by name', '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>', undefined, 'x.svg', 'image/svg+xml svg'],
    ['XML', '<?xml version="1.0"?><a/>', undefined, undefined, 'application/xml xml'],
    ['umlauts cut by the pieces in which they come', 'ä'.repeat(1000), undefined, undefined, 'text/plain txt'],
    ['text that ends in half a character', Buffer.from('grün').subarray(0, 3), 'text/plain', 'x.txt', 'application/octet-stream bin'],
    ['Latin-1', Buffer.from('grün und blau', 'latin1'), 'text/plain', 'x.txt', 'application/octet-stream bin'],
    ['text with a NUL', 'abc\0def', 'text/plain', 'x.txt', 'application/octet-stream bin'],
    ['bytes that say they are an image', hex('00010203'), 'image/png', 'x.png', 'application/octet-stream bin'],
  ])('%s', async (_what, bytes, declared, fileName, expected) => {
    expect(await typeOf(bytes, declared, fileName)).toBe(expected);
  });

  it('is detected in all of a long text, not only in its head', async () => {
    const long = Buffer.alloc(300_000, 'x');
    expect(await typeOf(long, 'text/plain', undefined, 65_536)).toBe('text/plain txt');
    long[299_999] = 0xff;
    expect(await typeOf(long, 'text/plain', undefined, 65_536)).toBe('application/octet-stream bin');
  });

  it('is found for any bytes, names and declarations, and always fits a header and a file name', async () => {
    const signatures = [
      '89504e47',
      'ffd8ff',
      '504b0304',
      '1f8b08',
      '25504446',
      '52494646',
      '494433',
      '4f676753',
      '0000002066747970',
      '49492a00',
      '1a45dfa3',
      '424d',
    ].map(hex);
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...signatures),
        fc.uint8Array({ maxLength: 400 }),
        fc.string(),
        fc.string(),
        async (start, rest, declared, name) => {
          const found = await typeOf(Buffer.concat([start, rest]), declared, name, 64);
          const [contentType = '', extension] = found.split(' ');
          expect(contentType).toMatch(mediaType);
          expect(extension).toMatch(/^[a-z0-9]{1,10}$/);
        },
      ),
      { numRuns: 300 },
    );
  });
});
