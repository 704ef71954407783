import type { Io } from '../io.ts';
import { createPaint } from '../render/paint.ts';
import { plainText, printableText } from '../render/plain.ts';

/** What the daemon says about a change. */
export interface Changed {
  readonly changed: readonly string[];
  readonly restart: readonly string[];
  readonly diff?: string | undefined;
  readonly dryRun?: true | undefined;
}

/** Returns what a change did, and what is left to do. */
export function changeText(what: string, { changed, restart, diff, dryRun }: Changed, io: Io): string {
  const restarts =
    restart.length === 0
      ? []
      : [`A restart ${dryRun === true ? 'would be' : 'is'} needed for ${plainText(restart.join(', '))}: \`gatehouse call gateway.restart\`.`];
  if (dryRun === true) return [diff === undefined || diff === '' ? 'Nothing would change.' : paintDiff(diff, io), ...restarts].join('\n');
  const inForce = changed.length > restart.length ? ', and it is in force' : '';
  return [`${what}${inForce}.`, ...restarts].join('\n');
}

/** Colours a unified diff on a terminal. */
export function paintDiff(diff: string, io: Io): string {
  const paint = createPaint(io);
  return diff
    .trimEnd()
    .split('\n')
    .map((line) => {
      const text = printableText(line.replace(/\r$/, ''));
      if (/^[-+]{3} |^@@/.test(line)) return paint('dim', text);
      return line.startsWith('-') ? paint('red', text) : line.startsWith('+') ? paint('green', text) : text;
    })
    .join('\n');
}
