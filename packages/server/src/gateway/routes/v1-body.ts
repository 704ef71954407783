import type * as z from 'zod';
import { AppError } from '../../kernel/app-error.ts';
import { issuesOf, sentenceOf } from '../issues.ts';

/** Parses a strict `/v1` body: every unknown field is named, the first one (or else the first wrong one) is `param`, of which `fields` keeps only the name of the top field. */
export function parseV1<Schema extends z.ZodType>(schema: Schema, body: unknown, param: 'paths' | 'fields' = 'paths'): z.output<Schema> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const found = issuesOf(parsed.error);
  const path = found.unknown[0] ?? found.issues.find((issue) => issue.path !== '')?.path;
  throw new AppError('invalid_params', sentenceOf(found), {
    issues: found.issues,
    ...(path !== undefined && { param: param === 'paths' ? path : path.replace(/\..*$/, '') }),
  });
}
