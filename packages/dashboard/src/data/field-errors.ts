import { GatehouseError } from '@gatehouse/client';

/** What is wrong, by the path of the parameter (`schedule.expr`). */
export type FieldErrors = ReadonlyMap<string, string>;

/** What a form itself finds wrong before anything is asked. */
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

/** What is said of a field, or of something inside it. */
export function errorOf(errors: FieldErrors, path: string): string | undefined {
  return errors.get(path) ?? [...errors].find(([one]) => one.startsWith(`${path}.`) || one.startsWith(`${path}[`))?.[1];
}
