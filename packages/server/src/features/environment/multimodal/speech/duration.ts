/** Bytes per second of the least that speech needs (Opus at 6 kbit/s): what no header states is at most so long. */
const leastBytesPerSecond = 750;

/** Estimates the length of a recording in seconds from its headers; an upper bound where they do not state it. */
export function estimateSeconds(bytes: Uint8Array, mimeType: string): number {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const most = data.length / leastBytesPerSecond;
  const found =
    mimeType === 'audio/wav'
      ? wavSeconds(data)
      : mimeType === 'audio/ogg'
        ? oggSeconds(data)
        : mimeType.endsWith('/mp4')
          ? mp4Seconds(data)
          : undefined;
  // A header that claims more than the bytes can hold is wrong.
  return found === undefined || !Number.isFinite(found) || found < 0 ? most : Math.min(found, most);
}

function wavSeconds(data: Buffer): number | undefined {
  const at = data.indexOf('fmt ', 12, 'latin1');
  if (at === -1 || at + 20 > data.length) return undefined;
  const perSecond = data.readUInt32LE(at + 16);
  return perSecond === 0 ? undefined : data.length / perSecond;
}

/** The position of the last page, in samples: 48,000 a second for Opus. */
function oggSeconds(data: Buffer): number | undefined {
  const last = data.lastIndexOf('OggS', data.length, 'latin1');
  if (last === -1 || last + 14 > data.length) return undefined;
  const samples = Number(data.readBigInt64LE(last + 6));
  const vorbis = data.indexOf('\u0001vorbis', 0, 'latin1');
  const rate = vorbis !== -1 && vorbis < 200 && vorbis + 16 <= data.length ? data.readUInt32LE(vorbis + 12) : 48_000;
  return rate === 0 ? undefined : samples / rate;
}

function mp4Seconds(data: Buffer): number | undefined {
  const at = data.indexOf('mvhd', 0, 'latin1');
  if (at === -1 || at + 40 > data.length) return undefined;
  const isLong = data[at + 4] === 1;
  const scale = data.readUInt32BE(at + (isLong ? 24 : 16));
  const length = isLong ? Number(data.readBigUInt64BE(at + 28)) : data.readUInt32BE(at + 20);
  return scale === 0 ? undefined : length / scale;
}
