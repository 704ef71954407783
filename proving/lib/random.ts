/** A small generator (mulberry32) that is fully determined by its seed, so that a failed run can be repeated. */
export interface Random {
  readonly seed: number;
  /** 0 ≤ x < 1. */
  next(): number;
  /** Integer, 0 ≤ x < `below`. */
  int(below: number): number;
}

export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  return { seed, next, int: (below) => Math.floor(next() * below) };
}

/** Returns a seed for a run without one. */
export function freshSeed(): number {
  return Math.floor(Math.random() * 4_294_967_296);
}
