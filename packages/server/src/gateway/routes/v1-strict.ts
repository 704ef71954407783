import type * as z from 'zod';
import { AppError } from '../../kernel/app-error.ts';
import { parseInput } from '../parse-input.ts';

const wayOut =
  'this gateway runs gateway.compat.fields: strict; use a token with compat.fields: extended ("gatehouse connect CLIENT" makes one), set gateway.compat.fields: extended, or call /v1/responses';

/** Parses by the strict set. When the extended set has the refused field, the error says how to enable it. */
export function parseStrictly<Schema extends z.ZodType>(
  strict: Schema,
  extended: z.ZodObject,
  body: unknown,
  param: 'paths' | 'fields' = 'paths',
): z.output<Schema> {
  try {
    return parseInput(strict, body, param);
  } catch (error) {
    if (!(error instanceof AppError) || !wouldHelp(error, extended, body)) throw error;
    throw new AppError(error.code, `${error.message}; ${wayOut}`, error.details);
  }
}

function wouldHelp({ details }: AppError, extended: z.ZodObject, body: unknown): boolean {
  const isUnknown = (details.issues ?? []).filter(({ message }) => message === 'unknown field');
  return isUnknown.some(({ path }) => Object.hasOwn(extended.shape, path)) || extended.safeParse(body).success;
}
