import { GatehouseError } from '@gatehouse/client';

/** Error messages by the path of the parameter (`schedule.expr`). */
export type FieldErrors = ReadonlyMap<string, string>;

/** A validation error that the form finds before it sends a request. */
export class DraftError extends Error {
  readonly path: string;

  constructor(path: string, message: string) {
    super(message);
    this.path = path;
  }
}

export function fieldErrors(error: unknown): FieldErrors {
  if (error instanceof DraftError) return new Map([[error.path, error.message]]);
  if (error instanceof GatehouseError) return new Map(error.issues.map(({ path, message }) => [path, message]));
  return new Map();
}

/** Returns the message for a field, or for a value inside it. */
export function errorOf(errors: FieldErrors, path: string): string | undefined {
  return errors.get(path) ?? [...errors].find(([one]) => one.startsWith(`${path}.`) || one.startsWith(`${path}[`))?.[1];
}
