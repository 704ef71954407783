/**
 * Signs of a vector after a fixed random rotation: their Hamming distance grows with the angle between two vectors. The
 * rotation (random signs and a Hadamard transform, twice) spreads the few nonzero numbers of a sparse vector over all.
 */
const minBits = 512;
const maxBits = 1_024;

/** Returns the number of 32-bit words that hold the signs of a vector. */
export function signLength(dimensions: number): number {
  return Math.min(paddedLength(dimensions), maxBits) / 32;
}

/** Returns the rotated vector, padded to the number of signs. */
export function rotate(vector: Float32Array): Float32Array {
  const length = paddedLength(vector.length);
  const work = new Float32Array(length);
  work.set(vector);
  for (const flips of flipsOf(length)) {
    for (let i = 0; i < length; i += 1) work[i] = (work[i] ?? 0) * (flips[i] ?? 1);
    transform(work);
  }
  return work.subarray(0, signLength(vector.length) * 32);
}

export function signsOf(rotated: Float32Array): Int32Array {
  const signs = new Int32Array(rotated.length / 32);
  for (let i = 0; i < rotated.length; i += 1) if ((rotated[i] ?? 0) > 0) signs[i >>> 5] = (signs[i >>> 5] ?? 0) | (1 << (i & 31));
  return signs;
}

/** Scales to length one, so that a product of two is their cosine; a vector of zeros stays zero. */
export function normalized(vector: Float32Array): Float32Array {
  let sum = 0;
  for (const value of vector) sum += value * value;
  const length = Math.sqrt(sum);
  return length === 0 ? vector : vector.map((value) => value / length);
}

export function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += (a[i] ?? 0) * (b[i] ?? 0);
  return sum;
}

/** Bytes as they are stored; every supported machine has the low byte first. */
export function toBytes(values: Float32Array | Int32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

export function toFloats(bytes: Uint8Array): Float32Array {
  const aligned = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
  return new Float32Array(aligned.buffer, aligned.byteOffset, aligned.byteLength >>> 2);
}

export function toInt32s(bytes: Uint8Array): Int32Array {
  const aligned = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
  return new Int32Array(aligned.buffer, aligned.byteOffset, aligned.byteLength >>> 2);
}

function paddedLength(dimensions: number): number {
  return Math.max(minBits, 2 ** Math.ceil(Math.log2(dimensions)));
}

/** The fast Walsh–Hadamard transform, in place, without scaling: only signs are used. */
function transform(values: Float32Array): void {
  for (let half = 1; half < values.length; half *= 2) {
    for (let from = 0; from < values.length; from += half * 2) {
      for (let i = from; i < from + half; i += 1) {
        const a = values[i] ?? 0;
        const b = values[i + half] ?? 0;
        values[i] = a + b;
        values[i + half] = a - b;
      }
    }
  }
}

const flipsByLength = new Map<number, readonly Float32Array[]>();

/** Deterministic on every machine and in every version: stored signs are compared with new ones. */
function flipsOf(length: number): readonly Float32Array[] {
  let flips = flipsByLength.get(length);
  if (flips === undefined) {
    let state = 0x9e3779b9;
    const next = () => {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      return (state & 0x8000) === 0 ? 1 : -1;
    };
    flips = [Float32Array.from({ length }, next), Float32Array.from({ length }, next)];
    flipsByLength.set(length, flips);
  }
  return flips;
}
