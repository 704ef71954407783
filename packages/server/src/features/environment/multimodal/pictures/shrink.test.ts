import { deflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../../kernel/clock.ts';
import { readDimensions } from './dimensions.ts';
import { createFitPicture } from './shrink.ts';

const { signal } = new AbortController();
const limits = { maxSide: 100, maxPixels: 1_000_000 };
const fit = createFitPicture(systemClock);
const png = { mimeType: 'image/png', extension: 'png' };

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const whole = Buffer.alloc(body.length + 8);
  whole.writeUInt32BE(data.length, 0);
  body.copy(whole, 4);
  whole.writeUInt32BE(crc(body), body.length + 4);
  return whole;
}

function crc(data: Buffer): number {
  let value = 0xffffffff;
  for (const byte of data) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return (value ^ 0xffffffff) >>> 0;
}

/** A grey PNG; `claimed` are the pixels of its header. */
function pngOf(width: number, height: number, claimed = { width, height }): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(claimed.width, 0);
  header.writeUInt32BE(claimed.height, 4);
  header[8] = 8;
  const pixels = deflateSync(Buffer.alloc((width + 1) * height));
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', header), chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))]);
}

describe('an image for a model', () => {
  test('stays as it is when models take it', async () => {
    const bytes = pngOf(100, 40);
    expect(await fit({ bytes, ...png }, limits, signal)).toEqual({ bytes, ...png });
  });

  test('is scaled down, and its proportions kept', async () => {
    const picture = await fit({ bytes: pngOf(400, 200), ...png }, limits, signal);
    expect(picture.mimeType).toBe('image/jpeg');
    expect(readDimensions(picture.bytes)).toMatchObject({ width: 100, height: 50 });
  });

  test.each([
    ['a bomb of pixels', pngOf(1, 1, { width: 40_000, height: 40_000 }), 'payload_too_large'],
    ['a file that ends too early', pngOf(400, 400).subarray(0, 60), 'invalid_params'],
    ['a header that lies', pngOf(1, 1, { width: 900, height: 900 }), 'invalid_params'],
    ['no size', pngOf(1, 1, { width: 0, height: 0 }), 'invalid_params'],
    ['noise behind a signature', Buffer.concat([pngOf(1, 1).subarray(0, 16), Buffer.alloc(400, 0xa5)]), 'payload_too_large'],
  ])('is refused: %s', async (_what, bytes, code) => {
    await expect(fit({ bytes, ...png }, limits, signal)).rejects.toMatchObject({ code });
  });

  test('is not read when the call has ended', async () => {
    await expect(fit({ bytes: pngOf(400, 400), ...png }, limits, AbortSignal.abort())).rejects.toMatchObject({ code: 'cancelled' });
  });
});

test('headers of other formats', () => {
  const gif = Buffer.concat([Buffer.from('GIF89a', 'latin1'), Buffer.from([0x20, 3, 0x58, 2]), Buffer.alloc(30)]);
  expect(readDimensions(gif)).toEqual({ width: 800, height: 600, frames: 1 });
  const webp = Buffer.concat([
    Buffer.from('RIFF\0\0\0\0WEBPVP8X', 'latin1'),
    Buffer.from([10, 0, 0, 0, 2, 0, 0, 0, 0xff, 3, 0, 0xff, 1, 0]),
    Buffer.alloc(10),
  ]);
  expect(readDimensions(webp)).toEqual({ width: 1024, height: 512, frames: 2 });
  expect(readDimensions(Buffer.alloc(100))).toBeUndefined();
  expect(readDimensions(Buffer.alloc(3))).toBeUndefined();
});
