import type * as z from 'zod';
import { AppError } from '../kernel/app-error.ts';
import { issuesOf, sentenceOf } from '../kernel/issues.ts';

/** Parses a body or query with a strict schema: every unknown field is named, the first one (or else the first wrong one) is `param`, of which `fields` keeps only the name of the top field. */
export function parseInput<Schema extends z.ZodType>(schema: Schema, input: unknown, param: 'paths' | 'fields' = 'paths'): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const found = issuesOf(parsed.error);
  const path = found.unknown[0] ?? found.issues.find((issue) => issue.path !== '')?.path;
  throw new AppError('invalid_params', sentenceOf(found), {
    issues: found.issues,
    // No pattern: a name is as long as a body may be, and of any characters.
    ...(path !== undefined && { param: param === 'paths' ? path : path.split('.', 1).join('') }),
  });
}
