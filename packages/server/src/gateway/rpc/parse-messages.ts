import { AppError } from '../../kernel/app-error.ts';
import { checkJson, parseJson, parseJsonUnchecked } from '../../kernel/json.ts';
import type { RpcId } from '../error-body.ts';

/** A message that is valid JSON but is not processed: it is refused alone, whatever came with it. */
export class RefusedMessage {
  readonly error: AppError;
  readonly id: RpcId;

  constructor(error: AppError, id: RpcId) {
    this.error = error;
    this.id = id;
  }
}

/** Parses one message or a batch. Fails with `parse_error` only for text that is not valid JSON (decisions §5). */
export function parseMessages(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    const value = parseJsonUnchecked(text);
    return Array.isArray(value) ? value.map(checked) : checked(value);
  }
}

function checked(message: unknown): unknown {
  const refusal = checkJson(message);
  if (refusal === undefined) return message;
  const id = typeof message === 'object' && message !== null && 'id' in message ? message.id : null;
  const error = new AppError('invalid_envelope', refusal);
  return new RefusedMessage(error, typeof id === 'string' || typeof id === 'number' ? id : null);
}
