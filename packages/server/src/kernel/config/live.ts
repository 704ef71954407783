import { isDeepStrictEqual } from 'node:util';

/** A value that can change while the daemon runs. Read `current` when the value is used, or what changes later has no effect. */
export interface Live<T> {
  readonly current: T;
  /** Calls `run` after each change, for what is built from the value, in the order of these calls. Setting the value resolves when all are done. */
  onChange(run: (next: T, before: T) => void | Promise<void>): Disposable;
}

/** A value of which the owner may set the next one. */
export interface LiveSource<T> extends Live<T> {
  /**
   * Sets the value and waits for those that rebuild from it. What did not change keeps its identity, and when nothing did, nobody is called.
   * A failing listener is reported, and the others are called nevertheless.
   */
  set(next: T): Promise<void>;
}

export function createLive<T>(first: T, onError: (error: unknown) => void): LiveSource<T> {
  let current = first;
  const listeners = new Set<(next: T, before: T) => void | Promise<void>>();
  return {
    get current() {
      return current;
    },
    onChange(run) {
      const listener = (next: T, before: T) => run(next, before);
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
    async set(given) {
      const before = current;
      const next = keepEqual(before, given);
      if (next === before) return;
      current = next;
      const call = async (listener: (next: T, before: T) => void | Promise<void>) => listener(next, before);
      for (const listener of listeners) await call(listener).catch(onError);
    },
  };
}

/** Returns a part of a live value; its listeners are called when that part changes. */
export function livePart<T, Part>(whole: Live<T>, partOf: (value: T) => Part): Live<Part> {
  return {
    get current() {
      return partOf(whole.current);
    },
    onChange: (run) =>
      whole.onChange((next, before) => {
        const [part, earlier] = [partOf(next), partOf(before)];
        return isDeepStrictEqual(part, earlier) ? undefined : run(part, earlier);
      }),
  };
}

/** Returns what is built from a live value, the same until the value changes. */
export function derived<T, Built>(live: Live<T>, build: (value: T) => Built): () => Built {
  let last: { readonly from: T; readonly built: Built } | undefined;
  return () => {
    const from = live.current;
    if (last?.from !== from) last = { from, built: build(from) };
    return last.built;
  };
}

/** Returns a value that never changes. */
export function fixed<T>(value: T): Live<T> {
  return { current: value, onChange: () => ({ [Symbol.dispose]() {} }) };
}

/** Returns `next` with the parts of `before` that are equal: whatever is kept by identity is kept. */
function keepEqual<T>(before: T, next: T): T {
  if (isDeepStrictEqual(before, next)) return before;
  if (!isPlain(before) || !isPlain(next)) return next;
  const kept = Object.entries(next).map(([key, value]) => [key, Object.hasOwn(before, key) ? keepEqual(Reflect.get(before, key), value) : value]);
  // Same keys and types as `next`, of which equal parts are replaced.
  return Object.fromEntries(kept) as T;
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
