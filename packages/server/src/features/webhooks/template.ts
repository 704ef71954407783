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

/**
 * Renders a template (http-gateway.md §4.8): data in, text out. What cannot be looked up is empty, objects are JSON, and
 * what was filled in is not looked at again. At most `maxLength` characters.
 */
export function renderTemplate(template: string, context: TemplateContext, maxLength: number): string {
  let left = maxExpressions;
  let room = maxLength;
  const text = template.replace(expressions, (_, braces: string, expression: string) => {
    left -= 1;
    if (left < 0 || room <= 0 || braces.length > 2) return '';
    const value = printValue(lookUp(expression.trim(), context)).slice(0, Math.min(maxValueLength, room));
    room -= value.length;
    return value;
  });
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

function lookUp(expression: string, context: TemplateContext): unknown {
  const parts = partsOf(expression);
  if (parts === undefined) return undefined;
  const [first = '', ...rest] = parts;
  if (rest.length === 0 && (first === 'path' || first === 'now')) return context[first];
  if (first === 'headers' || first === 'query') return rest.length === 1 ? ownValue(context[first], rest[0] ?? '') : undefined;
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
