import type * as z from 'zod';
import { AppError } from '../kernel/app-error.ts';
import { issuesOf, sentenceOf } from '../kernel/issues.ts';

/** Parses a body or query strictly, naming every unknown field. The first one (else the first wrong one) is `param`, cut to its top by `fields`. */
export function parseInput<Schema extends z.ZodType>(schema: Schema, input: unknown, param: 'paths' | 'fields' = 'paths'): z.output<Schema> {
  const parsed = checkInput(schema, input);
  if (parsed.success) return parsed.data;
  const found = issuesOf(parsed.error);
  const path = found.unknown[0] ?? found.issues.find((issue) => issue.path !== '')?.path;
  throw new AppError('invalid_params', sentenceOf(found), {
    issues: found.issues,
    // No pattern: a name may be as long as a body, and contain any character.
    ...(path !== undefined && { param: param === 'paths' ? path : path.split('.', 1).join('') }),
  });
}

/**
 * Compares outside input with a schema, as `safeParse`. The library throws for some objects instead of a text, such as one whose
 * `length` is an object.
 */
export function checkInput<Schema extends z.ZodType>(schema: Schema, input: unknown): z.ZodSafeParseResult<z.output<Schema>> {
  try {
    return schema.safeParse(input);
  } catch (error) {
    throw new AppError('invalid_params', 'Expected another type: an object is where a text or a list belongs', { cause: error });
  }
}
