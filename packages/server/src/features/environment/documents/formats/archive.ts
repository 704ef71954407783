import { createGunzip } from 'node:zlib';
import { Refused, type Sink } from './sink.ts';
import type { Zip } from './zip.ts';

const maxUnpackedBytes = 268_435_456;
const block = 512;

/** Lists a zip archive; nothing is unpacked. */
export function listZip(zip: Zip, sink: Sink): void {
  sink.paragraph(`Archive with ${zip.entries.length} entries, not unpacked:`);
  for (const { name, size, isEncrypted, isFolder } of zip.entries) line(sink, name, isFolder ? undefined : size, isEncrypted ? ', encrypted' : '');
}

/** Lists a tar archive from its bytes, as they come. */
export async function listTar(chunks: AsyncIterable<Uint8Array>, sink: Sink): Promise<void> {
  sink.paragraph('Archive, not unpacked:');
  let rest = Buffer.alloc(0);
  let skip = 0;
  for await (const chunk of chunks) {
    rest = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    for (;;) {
      const skipped = Math.min(skip, rest.length);
      skip -= skipped;
      rest = rest.subarray(skipped);
      if (skip > 0 || rest.length < block) break;
      const header = rest.subarray(0, block);
      rest = rest.subarray(block);
      if (header.every((byte) => byte === 0)) return;
      if (header.toString('latin1', 257, 262) !== 'ustar') throw new Refused('broken', 'is a broken tar archive');
      const size = Number.parseInt(text(header, 124, 12).trim(), 8) || 0;
      skip = Math.ceil(Math.max(0, size) / block) * block;
      const kind = String.fromCharCode(header[156] ?? 48);
      // Long names and extended headers of other entries.
      if (/[xgLK]/.test(kind)) continue;
      const prefix = text(header, 345, 155);
      line(sink, `${prefix === '' ? '' : `${prefix}/`}${text(header, 0, 100)}`, kind === '5' ? undefined : size);
    }
  }
}

/** Lists what is compressed with gzip: a tar archive, or a single file. */
export async function listGzip(bytes: Uint8Array, sink: Sink): Promise<void> {
  const chunks = unpack(bytes);
  const first = await chunks.next();
  const start = Buffer.from(first.done === true ? [] : first.value);
  if (start.toString('latin1', 257, 262) === 'ustar') {
    await listTar(prepend(start, chunks), sink);
    return;
  }
  let size = start.length;
  for await (const chunk of chunks) size += chunk.length;
  sink.paragraph(`One file compressed with gzip, of ${size} bytes, not shown.`);
}

async function* prepend(first: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  yield* rest;
}

async function* unpack(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip();
  gunzip.end(bytes);
  let size = 0;
  try {
    for await (const chunk of gunzip) {
      if (!Buffer.isBuffer(chunk)) throw new TypeError('zlib returned no bytes');
      size += chunk.length;
      if (size > maxUnpackedBytes) throw new Refused('too_large', `unpacks to more than ${maxUnpackedBytes} bytes`);
      yield chunk;
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('Z_'))
      throw new Refused('broken', 'cannot be unpacked');
    throw error;
  } finally {
    gunzip.destroy();
  }
}

function text(header: Buffer, at: number, length: number): string {
  const field = header.subarray(at, at + length);
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end === -1 ? length : end);
}

/** Names come from outside: control characters could pretend to be further lines. */
function line(sink: Sink, name: string, size: number | undefined, more = ''): void {
  const shown = name.replace(/\p{C}/gu, '_').slice(0, 500);
  const climbs = /^(?:[/\\]|[A-Za-z]:)|(?:^|[/\\])\.\.(?:[/\\]|$)/.test(name) ? ', a path outside of the archive' : '';
  sink.add(`- ${shown}${size === undefined ? '' : ` (${size} bytes${more}${climbs})`}\n`);
}
