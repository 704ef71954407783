import * as z from 'zod';
import { AppError } from '../kernel/app-error.ts';
import type { HttpCall } from './http-call.ts';
import { parseInput } from './parse-input.ts';

/**
 * Parses the query of a request with a strict object of string schemas; `invalid_params` names each field that is
 * unknown, given twice or wrong, and what was expected.
 */
export function parseQuery<Schema extends z.ZodType>(schema: Schema, call: HttpCall): z.output<Schema> {
  const fields = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(call.search)) {
    if (fields.has(name)) throw new AppError('invalid_params', `${name}: expected once`, { param: name });
    fields.set(name, value);
  }
  return parseInput(schema, Object.fromEntries(fields));
}

/** A query value that is a whole number from `min` to `max`. */
export function wholeNumber(min: number, max: number) {
  const expected = `expected a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, { error: expected, abort: true })
    .transform(Number)
    .refine((number) => number >= min && number <= max, expected);
}

/** Event streams accept no credentials in the query, whatever else the request carries (http-gateway.md §5): addresses end up in logs. */
export function refuseQueryToken(call: HttpCall): void {
  if (new URLSearchParams(call.search).has('token'))
    throw new AppError('unauthenticated', 'An event stream takes its token from the Authorization header only, not from the query');
}
