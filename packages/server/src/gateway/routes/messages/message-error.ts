import { AppError } from '../../../kernel/app-error.ts';
import { messageNames, toWireError } from '../v1-wire-error.ts';

/** Rewords a refusal of the turn for the route. Clients of this API send model names that only their vendor has. */
export function toMessageError(error: unknown): unknown {
  if (!(error instanceof AppError) || error.code !== 'not_found' || error.details.param !== 'model') return toWireError(error, messageNames);
  const message = `${error.message}. GET /v1/models lists what this gateway has: name one of them in the client (Claude Code: ANTHROPIC_MODEL and ANTHROPIC_DEFAULT_HAIKU_MODEL), or give the name a meaning in gateway.compat.models.`;
  return new AppError(error.code, message, error.details);
}
