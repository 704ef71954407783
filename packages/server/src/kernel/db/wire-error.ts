import type { ErrorCode } from '@gatehouse/contract';
import { AppError, type ErrorDetails } from '../app-error.ts';
import { type StartRefusal, StartError } from '../lifecycle/start-error.ts';

export interface WireError {
  readonly kind: 'app' | 'start' | 'plain';
  readonly code?: string;
  readonly message: string;
  readonly details?: ErrorDetails;
  readonly stack?: string | undefined;
}

/** Errors lose their class in a structured clone, so they travel as data. The cause of an AppError stays behind: it may not be clonable. */
export function toWireError(error: unknown): WireError {
  if (error instanceof AppError) {
    const { cause: _, ...details } = error.details;
    return { kind: 'app', code: error.code, message: error.message, details };
  }
  if (error instanceof StartError) return { kind: 'start', code: error.reason, message: error.message };
  if (error instanceof Error) return { kind: 'plain', message: error.message, stack: error.stack };
  return { kind: 'plain', message: String(error) };
}

export function fromWireError(wire: WireError): Error {
  switch (wire.kind) {
    case 'app':
      return new AppError(wire.code as ErrorCode, wire.message, wire.details);
    case 'start':
      return new StartError(wire.code as StartRefusal, wire.message);
    case 'plain': {
      const error = new Error(wire.message);
      if (wire.stack !== undefined) error.stack = wire.stack;
      return error;
    }
  }
}
