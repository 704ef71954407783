import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { freePort } from '@gatehouse/testkit/free-port';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type Daemon, startDaemon } from './lib/daemon.ts';
import { deflatedZip, hugePng, pdfBomb } from './lib/bombs.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { readMain } from './lib/main-thread.ts';
import { proofConfig } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';

/** Proves that archives, documents and images that unpack to far more than they are hold neither the event loop nor the memory. */
export interface BombReport {
  readonly bombs: number;
  /** Longest work of the main thread at a time, and most memory of the whole process with documents, and with images after them. */
  readonly longestMs: number;
  readonly documentsMb: number;
  readonly imagesMb: number;
  readonly wrong: readonly string[];
}

export interface BombOptions {
  readonly rounds: number;
  /** Bombs by name; all when absent. */
  readonly only?: RegExp;
  /** Megabytes that the daemon may take; more where other work keeps it from collecting garbage. */
  readonly maxMb?: number;
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}

const maxMainMs = 50;
const spaces = (bytes: number): Buffer => Buffer.alloc(bytes, 32);

interface Bomb {
  readonly name: string;
  /** What is called with the id of the upload. */
  readonly method: string;
  /** Makes it, which takes seconds. */
  readonly bytes: () => Buffer;
}

function bombs(): readonly Bomb[] {
  const document = (name: string, bytes: Bomb['bytes']) => ({ name, method: 'media.extract_document', bytes });
  const image = (name: string, bytes: Bomb['bytes']) => ({ name, method: 'image.analyze', bytes });
  const cell = '<c t="inlineStr"><is><t>cell</t></is></c>';
  const repeated =
    '<table:table-row table:number-rows-repeated="999999999"><table:table-cell table:number-columns-repeated="999999999"><text:p>x</text:p></table:table-cell></table:table-row>';
  return [
    document('a DOCX of 300 MB of spaces', () => deflatedZip({ 'word/document.xml': Buffer.concat([Buffer.from('<a>'), spaces(300_000_000)]) })),
    document('a DOCX of one endless text of 200 MB', () =>
      deflatedZip({ 'word/document.xml': Buffer.concat([Buffer.from('<w:p>'), Buffer.alloc(200_000_000, 97)]) }),
    ),
    document('a DOCX of one attribute of 100 MB', () =>
      deflatedZip({ 'word/document.xml': Buffer.concat([Buffer.from('<a b="'), Buffer.alloc(100_000_000, 97)]) }),
    ),
    document('a workbook of millions of cells', () =>
      deflatedZip({
        'xl/workbook.xml': Buffer.from('<workbook xmlns:r="r"><sheets><sheet name="S" r:id="1"/></sheets></workbook>'),
        'xl/_rels/workbook.xml.rels': Buffer.from('<Relationships><Relationship Id="1" Type="http://x/worksheet" Target="s.xml"/></Relationships>'),
        'xl/s.xml': Buffer.from(`<worksheet><sheetData>${`<row>${cell}</row>`.repeat(2_000_000)}`),
      }),
    ),
    document('a workbook of long shared strings', () =>
      deflatedZip({
        'xl/workbook.xml': Buffer.from('<workbook/>'),
        'xl/sharedStrings.xml': Buffer.from(`<sst>${'<si><t>word</t></si>'.repeat(5_000_000)}`),
      }),
    ),
    document('an ODS of repeated cells', () =>
      deflatedZip({
        mimetype: Buffer.from('application/vnd.oasis.opendocument.spreadsheet'),
        'content.xml': Buffer.from(`<x xmlns:table="b" xmlns:text="t"><table:table table:name="S">${repeated}</table:table></x>`),
      }),
    ),
    document('entities that expand', () =>
      deflatedZip({ 'word/document.xml': Buffer.from('<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>') }),
    ),
    document('elements that nest', () => deflatedZip({ 'word/document.xml': Buffer.from('<a>'.repeat(3_000_000)) })),
    document('a gzip of 300 MB', () => gzipSync(Buffer.alloc(300_000_000))),
    document('a gzip in a gzip', () => gzipSync(gzipSync(Buffer.alloc(300_000_000)))),
    document('a zip of 60,000 entries', () =>
      deflatedZip(Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [`f${at}`, Buffer.alloc(0)]))),
    ),
    document('HTML that nests', () => Buffer.from(`<html>${'<div>'.repeat(1_000_000)}`)),
    document('RTF that nests', () => Buffer.from(`{\\rtf1${'{'.repeat(1_000_000)}`)),
    document('JSON that nests', () => Buffer.from('['.repeat(1_000_000))),
    document('a CSV of one row', () => Buffer.from('a,'.repeat(4_000_000))),
    document('a PDF whose text unpacks to 300 MB', () => pdfBomb(300_000_000)),
    image('a PNG that claims 60000x60000', () => hugePng(60_000, 60_000, false)),
    image('a PNG of 7900x8000 in some bytes', () => hugePng(7_900, 8_000, true)),
    image('a GIF that claims 65535x65535', () =>
      Buffer.concat([Buffer.from('GIF89a'), Buffer.from([255, 255, 255, 255, 0x80, 0, 0]), Buffer.alloc(200)]),
    ),
    image('a WebP that claims 16383x16383', () =>
      Buffer.concat([
        Buffer.from('RIFF'),
        Buffer.from([100, 0, 0, 0]),
        Buffer.from('WEBPVP8X'),
        Buffer.from([10, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0x3f, 0, 0xfe, 0x3f, 0]),
        Buffer.alloc(80),
      ]),
    ),
  ];
}

export async function proveDocumentBombs({ rounds, only, maxMb = 300, broken, progress }: BombOptions): Promise<BombReport> {
  const provider = await startFakeProvider({ journal: 0, deltas: 1 });
  const home = await makeHome();
  const wrong: string[] = [];
  let daemon: Daemon | undefined;
  try {
    await writeConfig(home, proofConfig(provider.url, { media: { vision: { models: ['local/test-model'] } } }));
    daemon = await startDaemon({
      home,
      port: await freePort(),
      readyTimeoutMs: 100_000,
      hooks: [join(import.meta.dirname, 'lib/main-cpu-watch.ts')],
      ...(broken !== undefined && { broken }),
    });
    const running = daemon;
    // What is loaded for the first document and image is compiled on the main thread.
    for (let at = 0; at < 3; at += 1) {
      await rpcCall(running, 'media.extract_document', { attachment_url: await upload(running, Buffer.from(`Hello ${at}`.padEnd(300_000))) });
      await rpcCall(running, 'image.analyze', { attachment_url: await upload(running, hugePng(100 + at, 100, true)) }).catch(() => undefined);
    }
    await readMain(running);
    let longestMs = 0;
    const peaks = { documentsMb: 0, imagesMb: 0 };
    const all = bombs().filter(({ name }) => only?.test(name) ?? true);
    // The peak never falls: all rounds of documents come before the images.
    const order = Array.from({ length: rounds }, () => all)
      .flat()
      .toSorted((one, other) => Number(one.method === 'image.analyze') - Number(other.method === 'image.analyze'));
    for (const { name, method, bytes } of order) {
      const attachment_url = await upload(running, bytes());
      const answer: unknown = await rpcCall(running, method, { attachment_url }, { timeoutMs: 120_000 }).catch((error: unknown) => error);
      if (String(answer).includes('internal')) wrong.push(`${name}: ${String(answer)}`);
      const seen = await readMain(running).catch(() => undefined);
      if (seen === undefined) {
        // Its watchdog stops a daemon whose loop is held for 30 s.
        wrong.push(`${name}: the daemon does not answer any more`);
        return { bombs: all.length * rounds, longestMs: Math.max(longestMs, 30_000), ...peaks, wrong };
      }
      if (seen.longestMs > maxMainMs) wrong.push(`${name}: held the main thread for ${Math.round(seen.longestMs)} ms`);
      const kind = method === 'image.analyze' ? 'imagesMb' : 'documentsMb';
      if (seen.peakMb > maxMb && peaks[kind] <= maxMb) wrong.push(`${name}: the daemon had ${Math.round(seen.peakMb)} MB`);
      peaks[kind] = Math.max(peaks[kind], Math.round(seen.peakMb));
      longestMs = Math.max(longestMs, seen.longestMs);
      progress?.(`${name}: ${Math.round(seen.longestMs)} ms, ${Math.round(seen.peakMb)} MB`);
    }
    return { bombs: all.length * rounds, longestMs: Math.round(longestMs), ...peaks, wrong };
  } finally {
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}

async function upload({ port, token }: Daemon, bytes: Buffer): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/media`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' },
    body: new Uint8Array(bytes),
  });
  const { mediaId } = (await response.json()) as { mediaId?: string };
  if (mediaId === undefined) throw new Error(`a bomb of ${bytes.length} bytes was not stored: ${response.status}`);
  return mediaId;
}
