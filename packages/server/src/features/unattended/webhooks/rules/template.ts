/** What templates see. Names of headers are lower-case; a query field that is there twice has its last value. */
export interface TemplateContext {
  readonly payload: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  /** Behind `webhooks.path`, without slashes at its ends. */
  readonly path: string;
  /** ISO 8601, UTC. */
  readonly now: string;
}

/** More braces than two make no expression of what stands within, but one that cannot be looked up. */
const expressions = /(\{{2,})([^{}]{0,512})\}{2,}/g;
const maxExpressions = 200;
/** Longest text that one expression gives. */
const maxValueLength = 16_384;

/** Text as it stands, or the path of a value; without a path it is empty, but counts. */
type Piece = string | { readonly path: readonly string[] | undefined };

/** By template: there are as many as the configuration has. */
const known = new Map<string, readonly Piece[]>();

function piecesOf(template: string): readonly Piece[] {
  let pieces = known.get(template);
  if (pieces === undefined) known.set(template, (pieces = cut(template)));
  return pieces;
}

function cut(template: string): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  for (const { 0: whole, 1: braces = '', 2: expression = '', index } of template.matchAll(expressions)) {
    pieces.push(template.slice(at, index), { path: braces.length > 2 ? undefined : partsOf(expression.trim()) });
    at = index + whole.length;
  }
  pieces.push(template.slice(at));
  return pieces;
}

/**
 * Renders a template (http-gateway.md §4.8): data in, text out. What cannot be looked up is empty, objects are JSON, and
 * what was filled in is not looked at again. At most `maxLength` characters.
 */
export function renderTemplate(template: string, context: TemplateContext, maxLength: number): string {
  let left = maxExpressions;
  let room = maxLength;
  let text = '';
  for (const piece of piecesOf(template)) {
    if (typeof piece === 'string') {
      text += piece;
      continue;
    }
    left -= 1;
    if (left < 0 || room <= 0 || piece.path === undefined) continue;
    const value = printValue(lookUp(piece.path, context)).slice(0, Math.min(maxValueLength, room));
    room -= value.length;
    text += value;
  }
  return text.slice(0, maxLength).toWellFormed();
}

/** Whether anything of a template comes from the request. */
export function hasExpressions(template: string): boolean {
  return template.search(expressions) !== -1;
}

/** The names and indexes of `a.b[0].c`; undefined for what is no path. */
function partsOf(expression: string): string[] | undefined {
  const parts: string[] = [];
  for (const segment of expression.split('.')) {
    const [, name, indexes = ''] = /^([^[\]\s"'`()]+)((?:\[\d{1,9}\])*)$/.exec(segment) ?? [];
    if (name === undefined) return undefined;
    parts.push(name, ...[...indexes.matchAll(/\d+/g)].map(([index]) => index));
  }
  return parts;
}

function lookUp(parts: readonly string[], context: TemplateContext): unknown {
  const [first = '', ...rest] = parts;
  if (rest.length === 0 && (first === 'path' || first === 'now')) return context[first];
  const [name = ''] = rest;
  // Vendors print header names in mixed case; they are case-insensitive (RFC 9110 §5.1).
  if (first === 'headers') return rest.length === 1 ? ownValue(context.headers, name.toLowerCase()) : undefined;
  if (first === 'query') return rest.length === 1 ? ownValue(context.query, name) : undefined;
  return valueAt(context.payload, first === 'payload' ? rest : parts);
}

/** The value at a path of own properties: nothing that a prototype brings is ever reached. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  let current = value;
  for (const part of path) current = ownValue(current, part);
  return current;
}

function ownValue(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || (Array.isArray(value) && !/^\d+$/.test(name))) return undefined;
  return Object.getOwnPropertyDescriptor(value, name)?.value;
}

function printValue(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
