import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import type { CSSProperties } from 'react';

type Screen = Result<'background.screen'>;
type Lines = NonNullable<Screen['lines']>;
type Run = Lines[number][number];

/** The screen of a terminal session as text with styles. What a program writes is only ever text here. */
export function TerminalScreen({ cols, rows, lines, cursor }: Pick<Screen, 'cols' | 'rows' | 'cursor'> & { readonly lines: Lines }) {
  return (
    <div
      className="terminal-screen"
      role="img"
      aria-label={t('Screen of the terminal session')}
      style={{ '--cols': cols, '--rows': rows } as CSSProperties}
    >
      {Array.from({ length: rows }, (_, y) => (
        <div key={y} className="terminal-row">
          {(lines[y] ?? []).map((run, index) => (
            <span key={index} style={styleOf(run)}>
              {run.text}
            </span>
          ))}
          {cursor?.y === y && <span className="terminal-cursor" style={{ '--x': cursor.x } as CSSProperties} />}
        </div>
      ))}
    </div>
  );
}

function styleOf({ fg, bg, bold, dim, italic, underline, inverse, hidden }: Run): CSSProperties {
  const color = fg === undefined ? undefined : colorOf(fg);
  const behind = bg === undefined ? undefined : colorOf(bg);
  return {
    color: inverse === true ? (behind ?? 'var(--terminal-bg)') : color,
    backgroundColor: inverse === true ? (color ?? 'var(--terminal-fg)') : behind,
    ...(bold === true && { fontWeight: 700 }),
    ...(dim === true && { opacity: 0.6 }),
    ...(italic === true && { fontStyle: 'italic' }),
    ...(underline === true && { textDecoration: 'underline' }),
    ...(hidden === true && { visibility: 'hidden' }),
  };
}

const base = [
  '#2e3436',
  '#ef5350',
  '#66bb6a',
  '#d4a72c',
  '#64a0ff',
  '#c792ea',
  '#4dd0e1',
  '#d3d7cf',
  '#7f8c8d',
  '#ff8a80',
  '#a5d6a7',
  '#ffe082',
  '#90caf9',
  '#e1bee7',
  '#80deea',
  '#ffffff',
];
const steps = [0, 95, 135, 175, 215, 255];

/** Returns the color of the palette of 256, or the one that is given. */
export function colorOf(color: number | string): string | undefined {
  if (typeof color === 'string') return /^#[0-9a-f]{6}$/.test(color) ? color : undefined;
  if (color < 16) return base[color];
  if (color >= 232) {
    const gray = 8 + (color - 232) * 10;
    return `rgb(${gray}, ${gray}, ${gray})`;
  }
  const cube = color - 16;
  return `rgb(${steps[Math.floor(cube / 36)]}, ${steps[Math.floor(cube / 6) % 6]}, ${steps[cube % 6]})`;
}
