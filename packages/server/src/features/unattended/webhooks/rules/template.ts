/** Values available to templates. Header names are lower-case; a duplicate query field has its last value. */
export interface TemplateContext {
  readonly payload: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  /** Path after `webhooks.path`, without leading and trailing slashes. */
  readonly path: string;
  /** ISO 8601, UTC. */
  readonly now: string;
}

/** Matches expressions; more than two braces make one that cannot be looked up. */
const expressions = /(\{{2,})([^{}]{0,512})\}{2,}/g;
const maxExpressions = 200;
/** Maximum length of one rendered expression. */
const maxValueLength = 16_384;

/** Literal text or the path of a value; without a path it renders as empty but counts as an expression. */
type Segment = string | { readonly path: readonly string[] | undefined };

/** Parsed templates; bounded by the number of templates in the configuration. */
const known = new Map<string, readonly Segment[]>();

function segmentsOf(template: string): readonly Segment[] {
  let segments = known.get(template);
  if (segments === undefined) known.set(template, (segments = cut(template)));
  return segments;
}

function cut(template: string): Segment[] {
  const segments: Segment[] = [];
  let at = 0;
  for (const { 0: whole, 1: braces = '', 2: expression = '', index } of template.matchAll(expressions)) {
    segments.push(template.slice(at, index), { path: braces.length > 2 ? undefined : partsOf(expression.trim()) });
    at = index + whole.length;
  }
  segments.push(template.slice(at));
  return segments;
}

/**
 * Renders a template (http-gateway.md §4.8) to at most `maxLength` characters. Unknown values are empty, objects are JSON,
 * and rendered values are not expanded again.
 */
export function renderTemplate(template: string, context: TemplateContext, maxLength: number): string {
  let left = maxExpressions;
  let remaining = maxLength;
  let text = '';
  for (const segment of segmentsOf(template)) {
    if (typeof segment === 'string') {
      text += segment;
      continue;
    }
    left -= 1;
    if (left < 0 || remaining <= 0 || segment.path === undefined) continue;
    const value = printValue(lookUp(segment.path, context)).slice(0, Math.min(maxValueLength, remaining));
    remaining -= value.length;
    text += value;
  }
  return text.slice(0, maxLength).toWellFormed();
}

/** Returns whether any part of a template comes from the request. */
export function hasExpressions(template: string): boolean {
  return template.search(expressions) !== -1;
}

/** Returns the names and indexes of `a.b[0].c`; undefined for an invalid path. */
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

/** Returns the value at a path of own properties; inherited ones are never reached. */
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
