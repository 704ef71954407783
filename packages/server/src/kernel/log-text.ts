import { styleText } from 'node:util';
import { parseJson } from './json.ts';

const styles = { fatal: 'red', error: 'red', warn: 'yellow', info: 'green', debug: 'cyan', trace: 'gray' } as const;
type Paint = (style: (typeof styles)[keyof typeof styles] | 'dim', text: string) => string;

/**
 * Turns a line of the JSON log into text for a terminal: local time, level, module, message and fields, with the stack of an
 * error on separate lines. A line that is not one of the log stays as it is.
 */
export function toLogText(line: string, color: boolean): string {
  const paint: Paint = (style, text) => (color ? styleText(style, text, { validateStream: false }) : text);
  const record = parse(line);
  if (record === undefined) return line;
  const { level, time, module, msg, ...fields } = record;
  const name = String(level);
  const style = name in styles ? styles[name as keyof typeof styles] : 'gray';
  const stacks: string[] = [];
  const shown = Object.entries(fields).map(([key, value]) => {
    const stack = stackOf(value);
    if (stack !== undefined) stacks.push(stack.replaceAll(/^/gm, '    '));
    return paint('dim', `${key}=${stack === undefined ? shortValue(value) : firstLine(stack)}`);
  });
  const head = [
    paint('dim', typeof time === 'number' ? clockTime(time) : ''),
    paint(style, name.padEnd(5)),
    ...(module === undefined ? [] : [paint('dim', `${shortValue(module)}:`)]),
    printable(String(msg ?? '')),
    ...shown,
  ];
  return `${[head.filter((part) => part !== '').join(' '), ...stacks.map((stack) => paint('dim', stack))].join('\n')}\n`;
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = parseJson(line);
    return typeof value === 'object' && value !== null && 'level' in value ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function stackOf(value: unknown): string | undefined {
  const isError = typeof value === 'object' && value !== null && 'stack' in value && typeof value.stack === 'string';
  return isError ? printable(String(value.stack), true) : undefined;
}

const firstLine = (text: string) => shortValue(text.split('\n', 1)[0]);

/** Longer values are cut; the JSON log has them whole. */
const maxValueLength = 200;

/** Plain words as they are, everything else as JSON: values with spaces stay apart from each other. */
function shortValue(value: unknown): string {
  const text = typeof value === 'string' && /^[\w./:@%+,-]+$/.test(value) ? value : printable(JSON.stringify(value) ?? '');
  return text.length > maxValueLength ? `${text.slice(0, maxValueLength)}…` : text;
}

/** Without control characters: a logged text must not move the cursor or recolor the terminal. */
function printable(text: string, lines = false): string {
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, (found) =>
    lines && found === '\n' ? found : `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function clockTime(ms: number): string {
  const at = new Date(ms);
  const digits = (value: number, length = 2) => String(value).padStart(length, '0');
  return `${digits(at.getHours())}:${digits(at.getMinutes())}:${digits(at.getSeconds())}.${digits(at.getMilliseconds(), 3)}`;
}
