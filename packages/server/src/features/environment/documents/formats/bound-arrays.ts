/**
 * Until it is disposed of, refuses new arrays of more than `maxBytes` in this thread. The limits of a thread do not cover their memory,
 * and pdf.js unpacks a stream into one array that doubles, whatever the stream unpacks to.
 */
export function boundArrays(maxBytes: number): Disposable & { readonly refused: boolean } {
  const original = globalThis.Uint8Array;
  let refused = false;
  const bounded = new Proxy(original, {
    construct(target, args: unknown[], newTarget) {
      const [length] = args;
      if (typeof length === 'number' && length > maxBytes) {
        refused = true;
        throw new RangeError(`An array of ${length} bytes is refused`);
      }
      const made: object = Reflect.construct(target, args, newTarget === bounded ? target : newTarget);
      return made;
    },
  });
  const { DecompressionStream: stream } = globalThis;
  const put = (name: string, value: unknown): void => void Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  put('Uint8Array', bounded);
  // It would collect all chunks first; without it pdf.js unpacks into an array.
  put('DecompressionStream', undefined);
  return {
    get refused() {
      return refused;
    },
    [Symbol.dispose]() {
      put('Uint8Array', original);
      put('DecompressionStream', stream);
    },
  };
}
