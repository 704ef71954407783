/** Returns a function that builds a value at its first call and returns the same value from then on. */
export function once<T extends object>(build: () => T): () => T {
  let built: T | undefined;
  return () => (built ??= build());
}
