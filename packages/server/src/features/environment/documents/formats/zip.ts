import { createInflateRaw } from 'node:zlib';
import { Refused } from './sink.ts';

export interface ZipEntry {
  readonly name: string;
  readonly size: number;
  readonly packedSize: number;
  readonly isEncrypted: boolean;
  readonly isFolder: boolean;
  readonly method: number;
  readonly offset: number;
}

const maxEntries = 20_000;
/** Bytes unpacked from one file in all; what is unpacked is parsed as a stream and not kept. */
const maxUnpackedBytes = 268_435_456;
/** Bytes of an entry that is read as a whole. */
const maxWholeBytes = 8_388_608;

/** Reads zip containers by their directory. Declared sizes are only shown; what is unpacked is counted. */
export class Zip {
  readonly entries: readonly ZipEntry[];
  readonly #bytes: Buffer;
  readonly #byName = new Map<string, ZipEntry>();
  #unpacked = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    try {
      this.entries = readDirectory(this.#bytes);
    } catch (error) {
      if (error instanceof Refused) throw error;
      throw new Refused('broken', 'has a broken zip directory');
    }
    // The first entry of a name is the one that Office reads too.
    for (const entry of this.entries) if (!this.#byName.has(entry.name)) this.#byName.set(entry.name, entry);
  }

  has(name: string): boolean {
    return this.#byName.has(name);
  }

  /** Unpacks an entry in chunks; undefined when there is none of the name. */
  stream(name: string): AsyncIterable<Buffer> | undefined {
    const entry = this.#byName.get(name);
    return entry === undefined ? undefined : this.#unpack(entry);
  }

  /** Returns a small entry as a whole. */
  async read(name: string): Promise<Buffer | undefined> {
    const chunks = this.stream(name);
    if (chunks === undefined) return undefined;
    const kept: Buffer[] = [];
    let size = 0;
    for await (const chunk of chunks) {
      size += chunk.length;
      if (size > maxWholeBytes) throw new Refused('too_large', `has a part of more than ${maxWholeBytes} bytes`);
      kept.push(chunk);
    }
    return Buffer.concat(kept);
  }

  async *#unpack(entry: ZipEntry): AsyncGenerator<Buffer> {
    if (entry.isEncrypted) throw new Refused('encrypted', 'is encrypted: remove its password first');
    const packed = this.#packed(entry);
    if (entry.method === 0) {
      this.#count(packed.length);
      yield packed;
      return;
    }
    if (entry.method !== 8) throw new Refused('unsupported', `is packed with method ${entry.method}, which is not supported`);
    const inflate = createInflateRaw();
    inflate.end(packed);
    try {
      for await (const chunk of inflate) {
        if (!Buffer.isBuffer(chunk)) throw new TypeError('zlib returned no bytes');
        this.#count(chunk.length);
        yield chunk;
      }
    } catch (error) {
      if (error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('Z_'))
        throw new Refused('broken', 'has a part that cannot be unpacked');
      throw error;
    } finally {
      inflate.destroy();
    }
  }

  #packed({ offset, packedSize }: ZipEntry): Buffer {
    const bytes = this.#bytes;
    if (offset + 30 > bytes.length || bytes.readUInt32LE(offset) !== 0x04034b50) throw new Refused('broken', 'has a broken zip directory');
    const start = offset + 30 + bytes.readUInt16LE(offset + 26) + bytes.readUInt16LE(offset + 28);
    if (start + packedSize > bytes.length) throw new Refused('broken', 'ends before its content does');
    return bytes.subarray(start, start + packedSize);
  }

  #count(size: number): void {
    this.#unpacked += size;
    if (this.#unpacked > maxUnpackedBytes) throw new Refused('too_large', `unpacks to more than ${maxUnpackedBytes} bytes`);
  }
}

function readDirectory(bytes: Buffer): ZipEntry[] {
  const end = findEnd(bytes);
  let count = bytes.readUInt16LE(end + 10);
  let at = bytes.readUInt32LE(end + 16);
  if (at === 0xffffffff || count === 0xffff) {
    const locator = end - 20;
    if (locator >= 0 && bytes.readUInt32LE(locator) === 0x07064b50) {
      const wide = Number(bytes.readBigUInt64LE(locator + 8));
      count = Number(bytes.readBigUInt64LE(wide + 32));
      at = Number(bytes.readBigUInt64LE(wide + 48));
    }
  }
  if (count > maxEntries) throw new Refused('too_large', `has more than ${maxEntries} entries`);
  const entries: ZipEntry[] = [];
  for (let index = 0; index < count; index += 1) {
    if (bytes.readUInt32LE(at) !== 0x02014b50) throw new Refused('broken', 'has a broken zip directory');
    const [nameLength, extraLength, commentLength] = [bytes.readUInt16LE(at + 28), bytes.readUInt16LE(at + 30), bytes.readUInt16LE(at + 32)];
    const name = bytes.toString('utf8', at + 46, at + 46 + nameLength);
    const plain = { size: bytes.readUInt32LE(at + 24), packedSize: bytes.readUInt32LE(at + 20), offset: bytes.readUInt32LE(at + 42) };
    entries.push({
      name,
      ...widen(plain, bytes.subarray(at + 46 + nameLength, at + 46 + nameLength + extraLength)),
      isEncrypted: (bytes.readUInt16LE(at + 8) & 1) === 1,
      isFolder: name.endsWith('/'),
      method: bytes.readUInt16LE(at + 10),
    });
    at += 46 + nameLength + extraLength + commentLength;
  }
  return entries;
}

type ZipSizes = Pick<ZipEntry, 'size' | 'packedSize' | 'offset'>;

/** Values that do not fit 32 bits are in an extra field (ZIP64). */
function widen(sizes: ZipSizes, extra: Buffer): ZipSizes {
  const { size, packedSize, offset } = sizes;
  if (size !== 0xffffffff && packedSize !== 0xffffffff && offset !== 0xffffffff) return sizes;
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) !== 1) continue;
    let from = at + 4;
    const next = (value: number) => {
      if (value !== 0xffffffff) return value;
      from += 8;
      return Number(extra.readBigUInt64LE(from - 8));
    };
    return { size: next(size), packedSize: next(packedSize), offset: next(offset) };
  }
  return sizes;
}

function findEnd(bytes: Buffer): number {
  for (let at = bytes.length - 22; at >= Math.max(0, bytes.length - 65_557); at -= 1) if (bytes.readUInt32LE(at) === 0x06054b50) return at;
  throw new Refused('broken', 'ends before its zip directory');
}
