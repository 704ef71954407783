import { AsyncLocalStorage } from 'node:async_hooks';
import type { Io } from '../io.ts';
import { widthOf } from './width.ts';
import { createPaint, type Paint } from './paint.ts';

/** How tables look on the terminal of a command. */
export interface Look {
  /** Columns of the terminal. */
  readonly width: number;
  readonly paint: Paint;
  readonly now: number;
}

const looks = new AsyncLocalStorage<Look>();

/** Runs a command whose tables fit the terminal; other output is complete, with full ids and times, for programs. */
export function withLook<T>(io: Io, run: () => T): T {
  const width = widthOf(io);
  return width === undefined ? run() : looks.run({ width, paint: createPaint(io), now: io.now() }, run);
}

/** Returns the look of the running command; undefined when its output is not a terminal. */
export function currentLook(): Look | undefined {
  return looks.getStore();
}
