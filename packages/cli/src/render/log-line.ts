import type { LogLine } from '@gatehouse/contract';
import type { Paint } from './paint.ts';
import { plainText, shorten } from './plain.ts';

/** Maximum length of a value in characters; `--json` has the whole. */
const valueLength = 200;
const colors = { fatal: 'red', error: 'red', warn: 'yellow', info: 'green', debug: 'cyan', trace: 'dim' } as const;

/** Formats a line of the daemon's log: time (UTC), level, module, message and fields, with the stack of an error on separate lines. */
export function renderLogLine({ timestamp, level, module, message, fields }: LogLine, paint: Paint): string {
  const stacks = Object.values(fields).flatMap((value) => stackOf(value) ?? []);
  const head = [
    paint('dim', new Date(timestamp).toISOString().slice(11, 23)),
    paint(colors[level], level.padEnd(5)),
    ...(module === undefined ? [] : [paint('dim', `${plainText(module)}:`)]),
    plainText(message),
    ...Object.entries(fields).map(([name, value]) => `${paint('dim', `${plainText(name)}=`)}${valueText(value)}`),
  ].join(' ');
  return [head, ...stacks.flatMap((stack) => stack.split('\n').map((line) => paint('dim', `    ${plainText(line)}`)))].join('\n');
}

function stackOf(value: unknown): string | undefined {
  return typeof value === 'object' && value !== null && 'stack' in value && typeof value.stack === 'string' ? value.stack : undefined;
}

function valueText(value: unknown): string {
  const text = stackOf(value)?.split('\n', 1)[0] ?? (typeof value === 'string' ? value : JSON.stringify(value));
  const short = plainText(shorten(text, valueLength));
  return /^[\w./:@%+,-]+$/.test(short) || (typeof value !== 'string' && stackOf(value) === undefined) ? short : JSON.stringify(short);
}
