import { cleanText } from './clean-text.ts';

const maxDepth = 24;
const maxBytes = 65_536;
const maxNodes = 10_000;

/**
 * The JSON schema of a tool's arguments as a model is told it: texts cleaned of what a reader does not see, the name of
 * the dialect left out (some providers refuse it). Undefined when it is no schema of an object, or too large or deep.
 */
export function cleanSchema(schema: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return undefined;
  const budget = { nodes: maxNodes };
  const cleaned = clean(schema, 0, budget);
  if (typeof cleaned !== 'object' || cleaned === null || !('type' in cleaned) || cleaned.type !== 'object') return undefined;
  const { $schema: _dialect, ...parameters }: Record<string, unknown> = { ...cleaned };
  return JSON.stringify(parameters).length > maxBytes ? undefined : parameters;
}

/** Undefined when a bound is passed. */
function clean(value: unknown, depth: number, budget: { nodes: number }): unknown {
  budget.nodes -= 1;
  if (budget.nodes < 0 || depth > maxDepth) return undefined;
  if (typeof value === 'string') return cleanText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => clean(item, depth + 1, budget));
    return items.includes(undefined) ? undefined : items;
  }
  const entries = Object.entries(value).map(([key, item]) => [key, clean(item, depth + 1, budget)] as const);
  return entries.some(([, item]) => item === undefined) ? undefined : Object.fromEntries(entries);
}
