const fnvOffset = 0x811c9dc5;
const fnvPrime = 0x01000193;

/**
 * Computes a vector of a text's words and character trigrams by feature hashing, L2-normalised; deterministic, the
 * same on every machine. Texts that share words are close to each other; it knows no meaning beyond words.
 */
export function hashingVector(text: string, dimensions: number): Float32Array {
  const vector = new Float32Array(dimensions);
  for (const [word] of text
    .normalize('NFKC')
    .toLowerCase()
    .matchAll(/[\p{L}\p{N}]+/gu)) {
    add(vector, `w ${word}`, 1);
    const framed = `<${word}>`;
    for (let i = 0; i + 3 <= framed.length; i += 1) add(vector, `g ${framed.slice(i, i + 3)}`, 0.5);
  }
  const length = Math.hypot(...vector);
  // A text without letters or digits still needs a vector: the cosine with a zero vector is undefined.
  if (length === 0) vector[0] = 1;
  else for (let i = 0; i < dimensions; i += 1) vector[i] = (vector[i] ?? 0) / length;
  return vector;
}

function add(vector: Float32Array, feature: string, weight: number) {
  let hash = fnvOffset;
  for (let i = 0; i < feature.length; i += 1) hash = Math.imul(hash ^ feature.charCodeAt(i), fnvPrime);
  // The low bits of FNV are weak for short inputs; the sign keeps collisions from adding up.
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b);
  hash ^= hash >>> 16;
  const index = (hash >>> 1) % vector.length;
  vector[index] = (vector[index] ?? 0) + ((hash & 1) === 0 ? weight : -weight);
}
