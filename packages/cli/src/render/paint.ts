import type { Io } from '../io.ts';

/** Codes that start and end a style. Each ends on its own, so that styles nest. */
const codes = {
  bold: [1, 22],
  dim: [2, 22],
  italic: [3, 23],
  underline: [4, 24],
  strike: [9, 29],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;

export type Style = keyof typeof codes;
export type Paint = (style: Style, text: string) => string;

/** Returns a painter that uses styles on a terminal only, unless the user disabled them (https://no-color.org). */
export function createPaint(io: Pick<Io, 'stdout' | 'env'>): Paint {
  if (!isColoured(io)) return plainPaint;
  return (style, text) => {
    const [start, end] = codes[style];
    return text === '' ? '' : `\x1b[${start}m${text}\x1b[${end}m`;
  };
}

export const plainPaint: Paint = (_style, text) => text;

function isColoured({ stdout, env }: Pick<Io, 'stdout' | 'env'>): boolean {
  return stdout.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
}
