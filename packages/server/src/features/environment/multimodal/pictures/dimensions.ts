/** Pixels that an image claims in its header, before anything is decoded. */
export interface Dimensions {
  readonly width: number;
  readonly height: number;
  /** Images in the file; more than one is an animation. */
  readonly frames: number;
}

/** Reads the header of a PNG, JPEG, GIF or WebP file; undefined for other formats, and for headers that are cut off. */
export function readDimensions(bytes: Uint8Array): Dimensions | undefined {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (data.length < 30) return undefined;
  if (data.readUInt32BE(0) === 0x89504e47) return pngOf(data);
  if (data.readUInt16BE(0) === 0xffd8) return jpegOf(data);
  const head = data.toString('latin1', 0, 12);
  if (head.startsWith('GIF8')) return { width: data.readUInt16LE(6), height: data.readUInt16LE(8), frames: 1 };
  if (head.startsWith('RIFF') && head.endsWith('WEBP')) return webpOf(data);
  return undefined;
}

function pngOf(data: Buffer): Dimensions {
  const at = data.indexOf('acTL', 8, 'latin1');
  const frames = at !== -1 && at < 4096 && at + 8 <= data.length ? data.readUInt32BE(at + 4) : 1;
  return { width: data.readUInt32BE(16), height: data.readUInt32BE(20), frames };
}

/** Segments until the first frame header. */
function jpegOf(data: Buffer): Dimensions | undefined {
  let at = 2;
  while (at + 9 < data.length) {
    if (data[at] !== 0xff) return undefined;
    const marker = data[at + 1] ?? 0;
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc)
      return { height: data.readUInt16BE(at + 5), width: data.readUInt16BE(at + 7), frames: 1 };
    if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)) at += 2;
    else if (marker === 0xd9 || marker === 0xda) return undefined;
    else at += 2 + data.readUInt16BE(at + 2);
  }
  return undefined;
}

function webpOf(data: Buffer): Dimensions | undefined {
  const kind = data.toString('latin1', 12, 16);
  if (kind === 'VP8X') return { width: data.readUIntLE(24, 3) + 1, height: data.readUIntLE(27, 3) + 1, frames: (data[20] ?? 0) & 2 ? 2 : 1 };
  if (kind === 'VP8L') {
    const bits = data.readUInt32LE(21);
    return { width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1, frames: 1 };
  }
  return kind === 'VP8 ' ? { width: data.readUInt16LE(26) & 0x3fff, height: data.readUInt16LE(28) & 0x3fff, frames: 1 } : undefined;
}
