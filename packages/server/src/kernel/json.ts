import { AppError } from './app-error.ts';

const defaultDepth = 64;
const protoRefused = 'The key "__proto__" is not accepted';
const tooDeep = (maxDepth: number) => `The JSON text is nested more than ${maxDepth} levels deep`;

export interface ParseJsonOptions {
  /** Nesting limit; 64 by default. V8 parses half a million levels, and code that walks the value recursively then overflows the stack. */
  readonly maxDepth?: number;
}

/**
 * Parses untrusted JSON text. Fails with `parse_error`; refuses nesting beyond `maxDepth` before anything
 * is built, and any key `__proto__`, which would replace the prototype of an object that it is copied into.
 */
export function parseJson(text: string, options: ParseJsonOptions = {}): unknown {
  const maxDepth = options.maxDepth ?? defaultDepth;
  if (mayBeDeeper(text, maxDepth) && depthOf(text, maxDepth) > maxDepth) throw new AppError('parse_error', tooDeep(maxDepth));
  const value = parseJsonUnchecked(text);
  if (mayNameProto(text)) refuseProto(value);
  return value;
}

/** Parses JSON text of any depth and with any keys: call `checkJson` before using any of its values. */
export function parseJsonUnchecked(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new AppError('parse_error', `The text is not valid JSON${positionIn(error)}`);
  }
}

/** Returns why a parsed value is refused, by the rules of `parseJson`; undefined when it is not. */
export function checkJson(value: unknown): string | undefined {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    const objects = level.filter((one) => typeof one === 'object' && one !== null);
    if (objects.length > 0 && depth === defaultDepth) return tooDeep(defaultDepth);
    if (objects.some((one) => Object.hasOwn(one, '__proto__'))) return protoRefused;
    level = objects.flatMap((one) => Object.values(one));
  }
  return undefined;
}

/** Counts brackets at the speed of a substring search: ordinary bodies have fewer than the limit and are not scanned. */
function mayBeDeeper(text: string, maxDepth: number): boolean {
  let left = maxDepth;
  for (const bracket of ['[', '{']) {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) {
      left -= 1;
      if (left < 0) return true;
    }
  }
  return false;
}

/** Depth of the nesting; stops counting above `limit`. For text that is not valid JSON the number is arbitrary: the parser refuses it anyway. */
function depthOf(text: string, limit: number): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === 0x5c) i += 1;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x5b || code === 0x7b) {
      depth += 1;
      if (depth > deepest) deepest = depth;
      if (deepest > limit) return deepest;
    } else if (code === 0x5d || code === 0x7d) depth -= 1;
  }
  return deepest;
}

/** The key can also be spelled with escapes, all of which start like this. */
function mayNameProto(text: string): boolean {
  return text.includes('__proto__') || text.includes('\\u00');
}

function refuseProto(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const item of value) refuseProto(item);
    return;
  }
  if (Object.hasOwn(value, '__proto__')) throw new AppError('parse_error', protoRefused);
  for (const item of Object.values(value)) refuseProto(item);
}

/** Returns only the position: the parser's own message quotes the text, which may contain a secret. */
function positionIn(error: unknown): string {
  const position = error instanceof Error ? /position (\d+)/.exec(error.message)?.[1] : undefined;
  return position === undefined ? '' : ` (at position ${position})`;
}
