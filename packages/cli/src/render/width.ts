import type { Io } from '../io.ts';

/** Returns the width of the terminal in columns; undefined for other output, which is not shortened. */
export function widthOf({ stdout }: Pick<Io, 'stdout'>): number | undefined {
  return stdout.isTTY === true && stdout.columns !== undefined && stdout.columns > 0 ? stdout.columns : undefined;
}
