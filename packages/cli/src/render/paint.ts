import type { Io } from '../io.ts';

const codes = { dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;

export type Paint = (color: keyof typeof codes, text: string) => string;

/** Returns a painter that uses colours on a terminal only, unless the user disabled them (https://no-color.org). */
export function createPaint(io: Io): Paint {
  const isColoured = io.stdout.isTTY === true && (io.env['NO_COLOR'] ?? '') === '' && io.env['TERM'] !== 'dumb';
  return (color, text) => (isColoured ? `\x1b[${codes[color]}m${text}\x1b[0m` : text);
}
