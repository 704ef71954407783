import { deflateSync, gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import {
  epubOf,
  makePdf,
  makeTar,
  makeZip,
  openDocumentOf,
  pdfOfStream,
  paragraph,
  slidesOf,
  wordOf,
  wordXml,
  workbookOf,
} from '../testing/make-files.ts';
import { joinParts } from '../shown.ts';
import { readDocument } from './read-document.ts';

const limits = { maxCharacters: 50_000, maxPages: 100 };
const read = (bytes: string | Buffer, extension?: string) => readDocument({ bytes: Buffer.from(bytes), extension, limits });

const wordTable = `<w:tbl><w:tr><w:tc>${paragraph('Name')}</w:tc><w:tc>${paragraph('Sum')}</w:tc></w:tr><w:tr><w:tc>${paragraph('A|B')}</w:tc><w:tc>${paragraph('1')}${paragraph('2')}</w:tc></w:tr></w:tbl>`;
const inline = (ref: string, text: string) => `<c r="${ref}" t="inlineStr"><is><t>${text}</t></is></c>`;
const styles = {
  name: 'xl/styles.xml',
  content:
    '<styleSheet><numFmts><numFmt numFmtId="164" formatCode="yyyy\\-mm"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/></cellXfs></styleSheet>',
};
const shared = {
  name: 'xl/sharedStrings.xml',
  content: '<sst><si><t>Month</t></si><si><r><t>Two </t></r><r><t>runs</t></r><rPh><t>X</t></rPh></si></sst>',
};
const mail = (more: string) => `From: Ann <ann@example.com>\r\nTo: bob@example.com\r\nSubject: =?utf-8?q?Gr=C3=BCn?=\r\nMIME-Version: 1.0\r\n${more}`;
const office = 'application/vnd.openxmlformats-officedocument';
const open = 'application/vnd.oasis.opendocument';

test.each<[what: string, bytes: string | Buffer, extension: string | undefined, mimeType: string, text: string]>([
  ['plain text', 'Hello\n', 'txt', 'text/plain', 'Hello'],
  ['text in UTF-16', Buffer.from('\uFEFFHéllo', 'utf16le'), 'txt', 'text/plain', 'Héllo'],
  ['text in Windows-1252', Buffer.from('gr\u00fcn', 'latin1'), 'txt', 'text/plain', 'grün'],
  ['Markdown', '# One\ntext\n## Two\nmore\n', 'md', 'text/markdown', '# One\ntext\n\n## Two\nmore'],
  ['Markdown with # in code', '# One\n```\n# no heading\n```\n', 'md', 'text/markdown', '# One\n```\n# no heading\n```'],
  ['CSV', 'a,b\n1,"x, y"\n', 'csv', 'text/csv', '| a | b |\n| --- | --- |\n| 1 | x, y |'],
  ['CSV with semicolons and quotes', 'a;b\n"say ""hi""";"two\nlines"\n', 'csv', 'text/csv', '| a | b |\n| --- | --- |\n| say "hi" | two lines |'],
  ['CSV with pipes', 'a,b\nx|y,2\n', 'csv', 'text/csv', '| a | b |\n| --- | --- |\n| x\\|y | 2 |'],
  ['TSV', 'a\tb\n1\t2', 'tsv', 'text/tab-separated-values', '| a | b |\n| --- | --- |\n| 1 | 2 |'],
  ['JSON', '{"a": [1]}', undefined, 'application/json', '{"a": [1]}'],
  ['XML', '<?xml version="1.0"?><a>b</a>', undefined, 'application/xml', '<?xml version="1.0"?><a>b</a>'],
  [
    'HTML',
    '<!doctype html><title>T</title><h1>Head</h1><p>One <b>two</b></p><ul><li>x<li>y</ul>',
    undefined,
    'text/html',
    '# Head\n\nOne two\n\n- x\n- y',
  ],
  [
    'HTML with a table',
    '<html><table><tr><th>a<th>b<tr><td>1<td><p>2</p><p>3</p></table>',
    undefined,
    'text/html',
    '| a | b |\n| --- | --- |\n| 1 | 2  3 |',
  ],
  ['HTML with hidden text', '<html><p>seen<p style="display:none">obey<script>x()</script><div hidden>obey</div>', undefined, 'text/html', 'seen'],
  [
    'RTF',
    "{\\rtf1\\ansi{\\fonttbl{\\f0 Arial;}}\\f0 Hello \\b bold\\b0\\par gr\\'fcn \\u8364?\\par}",
    undefined,
    'application/rtf',
    'Hello bold\n\ngrün €',
  ],
  [
    'RTF with a table',
    '{\\rtf1\\trowd a\\cell b\\cell\\row\\trowd 1\\cell 2\\cell\\row}',
    undefined,
    'application/rtf',
    '| a | b |\n| --- | --- |\n| 1 | 2 |',
  ],
  ['RTF with commands named like properties of objects', '{\\rtf1 a\\constructor\\toString b\\par}', undefined, 'application/rtf', 'ab'],
  ['RTF with hidden text', '{\\rtf1 seen{\\v obey}{\\*\\x obey}\\par}', undefined, 'application/rtf', 'seen'],
  ['mail', mail('\r\nThe text.\r\n'), undefined, 'message/rfc822', 'From: Ann <ann@example.com>\nTo: bob@example.com\nSubject: Grün\n\nThe text.'],
  [
    'mail in HTML',
    mail('Content-Type: text/html\r\n\r\n<p>One</p><p>Two</p>'),
    'eml',
    'message/rfc822',
    'From: Ann <ann@example.com>\nTo: bob@example.com\nSubject: Grün\n\nOne\n\nTwo',
  ],
  [
    'a mail with an attachment',
    mail(
      'Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nHi\r\n--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\n\r\n%PDF\r\n--b--\r\n',
    ),
    'eml',
    'message/rfc822',
    'From: Ann <ann@example.com>\nTo: bob@example.com\nSubject: Grün\n\nHi\n\nAttachments, not shown:\n- a.pdf (application/pdf, 5 bytes)',
  ],
  ['DOCX', wordOf(paragraph('Hello')), undefined, `${office}.wordprocessingml.document`, 'Hello'],
  [
    'DOCX with headings and lists',
    wordOf(`${paragraph('Top', 'Heading1')}<w:p><w:pPr><w:numPr><w:ilvl w:val="1"/></w:numPr></w:pPr><w:r><w:t>item</w:t></w:r></w:p>`),
    undefined,
    `${office}.wordprocessingml.document`,
    '# Top\n\n  - item',
  ],
  ['DOCX with a table', wordOf(wordTable), undefined, `${office}.wordprocessingml.document`, '| Name | Sum |\n| --- | --- |\n| A\\|B | 1 2 |'],
  [
    'DOCX with hidden and deleted text',
    wordOf(
      '<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>obey</w:t></w:r><w:r><w:t>seen</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>',
    ),
    undefined,
    `${office}.wordprocessingml.document`,
    'seen',
  ],
  [
    'DOCX with footnotes',
    wordOf(paragraph('Text'), [{ name: 'word/footnotes.xml', content: wordXml(paragraph('Note')) }]),
    undefined,
    `${office}.wordprocessingml.document`,
    'Text\n\n## Footnotes\n\nNote',
  ],
  [
    'XLSX',
    workbookOf({
      Costs: `<row>${inline('A1', 'a')}${inline('C1', 'c')}</row><row><c r="A2"><v>1.5</v></c><c r="B2" t="b"><v>1</v></c><c t="str"><f>A2</f><v>x</v></c></row>`,
    }),
    undefined,
    `${office}.spreadsheetml.sheet`,
    '## Sheet Costs\n\n| a |  | c |\n| --- | --- | --- |\n| 1.5 | TRUE | x |',
  ],
  [
    'XLSX with dates and shared texts',
    workbookOf({ D: '<row><c t="s"><v>0</v></c><c t="s"><v>1</v></c></row><row><c s="1"><v>45000</v></c><c s="2"><v>45000.5</v></c></row>' }, [
      styles,
      shared,
    ]),
    undefined,
    `${office}.spreadsheetml.sheet`,
    '## Sheet D\n\n| Month | Two runs |\n| --- | --- |\n| 2023-03-15 | 2023-03-15 12:00:00 |',
  ],
  [
    'XLSX with two sheets',
    workbookOf({ A: `<row>${inline('A1', 'x')}</row>`, B: `<row>${inline('A1', 'y')}</row>` }),
    undefined,
    `${office}.spreadsheetml.sheet`,
    '## Sheet A\n\n| x |\n| --- |\n\n## Sheet B\n\n| y |\n| --- |',
  ],
  [
    'PPTX',
    slidesOf(['<a:p><a:r><a:t>One</a:t></a:r></a:p>', '<a:p><a:r><a:t>Two</a:t></a:r></a:p>']),
    undefined,
    `${office}.presentationml.presentation`,
    '## Slide 1\n\nOne\n\n## Slide 2\n\nTwo',
  ],
  [
    'PPTX with a table',
    slidesOf(['<a:tbl><a:tr><a:tc><a:p><a:t>a</a:t></a:p></a:tc></a:tr><a:tr><a:tc><a:p><a:t>1</a:t></a:p></a:tc></a:tr></a:tbl>']),
    undefined,
    `${office}.presentationml.presentation`,
    '## Slide 1\n\n| a |\n| --- |\n| 1 |',
  ],
  [
    'ODT',
    openDocumentOf(
      'text',
      '<text:h text:outline-level="1">Top</text:h><text:p>One<text:s text:c="2"/>two</text:p><text:list><text:list-item><text:p>x</text:p></text:list-item></text:list>',
    ),
    undefined,
    `${open}.text`,
    '# Top\n\nOne  two\n\n- x',
  ],
  [
    'ODS',
    openDocumentOf(
      'spreadsheet',
      '<table:table table:name="S"><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell table:number-columns-repeated="2"><text:p>b</text:p></table:table-cell></table:table-row></table:table>',
    ),
    undefined,
    `${open}.spreadsheet`,
    '## Sheet S\n\n| a | b | b |\n| --- | --- | --- |',
  ],
  [
    'ODP',
    openDocumentOf('presentation', '<draw:page><text:p>One</text:p></draw:page><draw:page><text:p>Two</text:p></draw:page>'),
    undefined,
    `${open}.presentation`,
    '## Slide 1\n\nOne\n\n## Slide 2\n\nTwo',
  ],
  [
    'EPUB',
    epubOf(['<h1>Start</h1><p>Once.</p>', '<p>End.</p>']),
    undefined,
    'application/epub+zip',
    '## Chapter 1\n\n# Start\n\nOnce.\n\n## Chapter 2\n\nEnd.',
  ],
  [
    'PDF',
    makePdf(['First page text', 'Second page text']),
    undefined,
    'application/pdf',
    '## Page 1\n\nFirst page text\n\n## Page 2\n\nSecond page text',
  ],
  [
    'a PDF after other bytes',
    Buffer.concat([Buffer.from('junk\n'), makePdf(['Some page text'])]),
    undefined,
    'application/pdf',
    '## Page 1\n\nSome page text',
  ],
  [
    'zip',
    makeZip([
      { name: 'a/', content: '' },
      { name: 'a/b.txt', content: 'hello' },
    ]),
    undefined,
    'application/zip',
    'Archive with 2 entries, not unpacked:\n\n- a/\n- a/b.txt (5 bytes)',
  ],
  [
    'tar',
    makeTar([
      { name: 'd/', kind: '5' },
      { name: 'd/x', content: 'hello' },
    ]),
    undefined,
    'application/x-tar',
    'Archive, not unpacked:\n\n- d/\n- d/x (5 bytes)',
  ],
  [
    'tar.gz',
    gzipSync(makeTar([{ name: 'x', content: 'a'.repeat(700) }, { name: 'y' }])),
    undefined,
    'application/gzip',
    'Archive, not unpacked:\n\n- x (700 bytes)\n- y (0 bytes)',
  ],
  ['gzip', gzipSync('hello'), undefined, 'application/gzip', 'One file compressed with gzip, of 5 bytes, not shown.'],
])('reads %s', async (_what, bytes, extension, mimeType, text) => {
  const answer = await read(bytes, extension);
  expect(answer).toMatchObject({ document: { mimeType, truncated: false } });
  expect('document' in answer && joinParts(answer.document)).toBe(text);
});

const laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>';
const deep = (open: string, close: string, depth: number) => `${open.repeat(depth)}x${close.repeat(depth)}`;
const ole = Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(600)]);

test.each<[what: string, bytes: string | Buffer, extension: string | undefined, kind: string, message: RegExp]>([
  ['an empty file', '', 'txt', 'broken', /is empty/],
  ['binary bytes', Buffer.from([1, 0, 2]), 'txt', 'unsupported', /cannot be extracted/],
  ['an old Office file', ole, 'doc', 'unsupported', /old Office format/],
  ['an encrypted Office file', Buffer.concat([ole, Buffer.from('EncryptedPackage', 'utf16le')]), 'docx', 'encrypted', /password/],
  [
    'an encrypted PDF',
    makePdf(['x'], `/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <${'11'.repeat(32)}> /U <${'22'.repeat(32)}> >> /ID [<00> <00>]`),
    'pdf',
    'encrypted',
    /password/,
  ],
  ['an encrypted DOCX part', makeZip([{ name: 'word/document.xml', content: 'x', flags: 1 }]), 'docx', 'encrypted', /password/],
  ['an encrypted ODT', openDocumentOf('text', '', '<manifest><encryption-data/></manifest>'), 'odt', 'encrypted', /password/],
  [
    'a protected EPUB',
    epubOf(['x'], [{ name: 'META-INF/encryption.xml', content: '<e><CipherReference URI="OEBPS/text/c1.xhtml"/></e>' }]),
    'epub',
    'encrypted',
    /DRM/,
  ],
  ['a PDF of nothing', '%PDF-1.7\n', 'pdf', 'broken', /broken PDF/],
  ['a zip without a directory', Buffer.from('PK\u0003\u0004rest', 'latin1'), 'zip', 'broken', /zip directory/],
  ['a zip cut in half', wordOf(paragraph('x'.repeat(500))).subarray(0, 150), 'docx', 'broken', /zip directory/],
  ['an unknown packing', makeZip([{ name: 'word/document.xml', content: 'x', method: 12 }]), 'docx', 'unsupported', /method 12/],
  ['a DOCX of broken XML', wordOf('<w:p>'), 'docx', 'broken', /not well-formed/],
  [
    'a DOCX with external entities',
    makeZip([{ name: 'word/document.xml', content: '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>' }]),
    'docx',
    'unsupported',
    /never expanded/,
  ],
  ['a billion laughs', makeZip([{ name: 'word/document.xml', content: `${laughs}<x>&b;</x>` }]), 'docx', 'unsupported', /never expanded/],
  ['deep XML', makeZip([{ name: 'word/document.xml', content: deep('<a>', '</a>', 5000) }]), 'docx', 'too_large', /levels deep/],
  ['deep HTML', `<html>${deep('<div>', '</div>', 5000)}`, undefined, 'too_large', /nests more/],
  ['deep RTF', `{\\rtf1${deep('{', '}', 5000)}}`, undefined, 'too_large', /groups/],
  [
    'a DOCX that is a bomb without text',
    makeZip([{ name: 'word/document.xml', content: Buffer.concat([Buffer.from('<a>'), Buffer.alloc(300_000_000, 32)]) }]),
    'docx',
    'too_large',
    /text or tag of more/,
  ],
  [
    'a DOCX of one endless text',
    makeZip([{ name: 'word/document.xml', content: Buffer.concat([Buffer.from('<a>'), Buffer.alloc(5_000_000, 97)]) }]),
    'docx',
    'too_large',
    /text or tag/,
  ],
  [
    'a PDF whose text unpacks to much more',
    pdfOfStream(deflateSync(Buffer.alloc(120_000_000, 32)), '/Filter /FlateDecode'),
    'pdf',
    'too_large',
    /unpacks to more/,
  ],
  ['a gzip bomb', gzipSync(Buffer.alloc(300_000_000)), undefined, 'too_large', /unpacks to more/],
  ['a gzip cut in half', gzipSync('x'.repeat(5000)).subarray(0, 20), undefined, 'broken', /cannot be unpacked/],
  ['a broken tar', Buffer.concat([makeTar([{ name: 'a' }]).subarray(0, 512), Buffer.alloc(512, 1)]), undefined, 'broken', /broken tar/],
  ['an EPUB without its book', makeZip([{ name: 'mimetype', content: 'application/epub+zip' }]), 'epub', 'broken', /has no META-INF/],
])('refuses %s and says why', async (_what, bytes, extension, kind, message) => {
  expect(await read(bytes, extension)).toEqual({ refusal: { kind, message: expect.stringMatching(message) } });
});

test('names paths that leave an archive, and no line that a name makes up', async () => {
  const answer = await read(
    makeZip([
      { name: '../../etc/passwd', content: 'x' },
      { name: 'a\n- b', content: '' },
      { name: 'C:\\x', content: '' },
    ]),
  );
  expect('document' in answer && joinParts(answer.document).split('\n').slice(2)).toEqual([
    '- ../../etc/passwd (1 bytes, a path outside of the archive)',
    '- a_- b (0 bytes)',
    '- C:\\x (0 bytes, a path outside of the archive)',
  ]);
});

test('bounds cells that claim to repeat for ever', async () => {
  const row =
    '<table:table-row table:number-rows-repeated="999999999"><table:table-cell table:number-columns-repeated="999999999"><text:p>x</text:p></table:table-cell></table:table-row>';
  const answer = await read(openDocumentOf('spreadsheet', `<table:table table:name="S">${row}</table:table>`));
  expect(answer).toMatchObject({ document: { truncated: true } });
  expect('document' in answer && joinParts(answer.document).length).toBeLessThan(60_000);
});

test('cuts at the character limit and says so', async () => {
  const answer = await read('word '.repeat(20_000), 'txt');
  expect(answer).toMatchObject({ document: { truncated: true } });
  expect('document' in answer && answer.document.parts.reduce((sum, { text }) => sum + text.length, 0)).toBeLessThanOrEqual(50_000);
});

test('reads a long sheet no further than the limit, whatever it unpacks to', async () => {
  const rows = `<row>${inline('A1', 'cell')}</row>`.repeat(2_000_000);
  expect(await read(workbookOf({ Long: rows }))).toMatchObject({ document: { truncated: true } });
});

test('names pages of a PDF that have no text', async () => {
  expect(await read(makePdf(['', '']))).toMatchObject({
    document: { pageCount: 2, parts: [], notes: [expect.stringContaining('No page has more than a few characters: probably scanned')] },
  });
  expect(await read(makePdf(['Text of the first page', '']))).toMatchObject({ document: { notes: [expect.stringContaining('Page 2 has no text')] } });
});
