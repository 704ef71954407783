import { crc32, deflateSync } from 'node:zlib';
import { boundArrays } from './bound-arrays.ts';

export interface ScansRequest {
  readonly bytes: Uint8Array;
  readonly pages: readonly number[];
  /** Longest side of a picture, in pixels. */
  readonly maxSide: number;
}

/** The picture of a scanned page, as PNG. */
export interface Scan {
  readonly page: number;
  readonly png: Uint8Array;
}

/** A page of A4 at 400 dots per inch has 15 million. */
const maxPixels = 16_000_000;
/** Smaller pictures are logos and lines. */
const minPixels = 10_000;

interface RawImage {
  readonly data: Uint8Array | Uint8ClampedArray;
  readonly width: number;
  readonly height: number;
  /** 1: one bit per pixel, most significant first. */
  readonly kind?: number | undefined;
}

/** Returns the largest picture of each page, scaled down; pages without one are left out. Nothing is drawn: a scan is a picture. */
export async function readScans({ bytes, pages, maxSide }: ScansRequest): Promise<Scan[]> {
  using _arrays = boundArrays(Math.max(maxPixels * 4, bytes.byteLength));
  const { getDocumentProxy, getResolvedPDFJS } = await import('unpdf');
  const { OPS } = await getResolvedPDFJS();
  const document = await getDocumentProxy(new Uint8Array(bytes), {
    disableFontFace: true,
    useSystemFonts: false,
    isOffscreenCanvasSupported: false,
    maxImageSize: maxPixels,
    verbosity: 0,
  });
  const scans: Scan[] = [];
  for (const number of pages) {
    if (number > document.numPages) continue;
    const page = await document.getPage(number);
    const { fnArray, argsArray } = await page.getOperatorList();
    let largest: RawImage | undefined;
    for (const [at, operator] of fnArray.entries()) {
      const args: unknown = argsArray[at];
      const key: unknown = Array.isArray(args) ? args[0] : undefined;
      if (operator !== OPS.paintImageXObject || typeof key !== 'string') continue;
      const image = toImage(await objectOf(key.startsWith('g_') ? page.commonObjs : page.objs, key));
      if (image !== undefined && image.width * image.height > (largest === undefined ? minPixels : largest.width * largest.height)) largest = image;
    }
    page.cleanup();
    if (largest !== undefined) scans.push({ page: number, png: toPng(shrink(toGrey(largest), maxSide)) });
  }
  return scans;
}

function objectOf(objects: { get(key: string, callback: (value: unknown) => void): unknown }, key: string): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  objects.get(key, resolve);
  return promise;
}

function toImage(value: unknown): RawImage | undefined {
  if (typeof value !== 'object' || value === null || !('data' in value) || !('width' in value) || !('height' in value)) return undefined;
  const { data, width, height } = value;
  if (!(data instanceof Uint8Array || data instanceof Uint8ClampedArray) || typeof width !== 'number' || typeof height !== 'number') return undefined;
  if (width * height > maxPixels || width < 1 || height < 1) return undefined;
  return { data, width, height, kind: 'kind' in value && typeof value.kind === 'number' ? value.kind : undefined };
}

interface Grey {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
}

/** Text is read as well without colours, and a picture has a third of the size. */
function toGrey({ data, width, height, kind }: RawImage): Grey {
  const grey = new Uint8Array(width * height);
  if (kind === 1) {
    const rowBytes = Math.ceil(width / 8);
    for (let y = 0; y < height; y += 1)
      for (let x = 0; x < width; x += 1) grey[y * width + x] = ((data[y * rowBytes + (x >> 3)] ?? 0) >> (7 - (x & 7))) & 1 ? 255 : 0;
    return { data: grey, width, height };
  }
  const channels = Math.floor(data.length / (width * height));
  for (let pixel = 0; pixel < grey.length; pixel += 1) {
    const at = pixel * channels;
    const red = data[at] ?? 0;
    grey[pixel] = channels < 3 ? red : (red * 77 + (data[at + 1] ?? 0) * 150 + (data[at + 2] ?? 0) * 29) >> 8;
  }
  return { data: grey, width, height };
}

/** Averages squares of pixels, so that thin strokes stay visible. */
function shrink(image: Grey, maxSide: number): Grey {
  const factor = Math.ceil(Math.max(image.width, image.height) / maxSide);
  if (factor <= 1) return image;
  const width = Math.max(1, Math.floor(image.width / factor));
  const height = Math.max(1, Math.floor(image.height / factor));
  const data = new Uint8Array(width * height);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      let sum = 0;
      for (let dy = 0; dy < factor; dy += 1)
        for (let dx = 0; dx < factor; dx += 1) sum += image.data[(y * factor + dy) * image.width + x * factor + dx] ?? 255;
      data[y * width + x] = sum / (factor * factor);
    }
  }
  return { data, width, height };
}

function toPng({ data, width, height }: Grey): Uint8Array {
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y += 1) rows.set(data.subarray(y * width, (y + 1) * width), y * (width + 1) + 1);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // Eight bits of grey, no interlace.
  header.set([8, 0, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from('\u0089PNG\r\n\u001a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows, { level: 6 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(type: string, body: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), body]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, checksum]);
}
