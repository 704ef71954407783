import type { FindOperation, Operation, Tx } from './operation.ts';

/** An operation with its input, waiting for execution. */
export interface Unit {
  readonly operation: Operation<never, unknown>;
  readonly input: unknown;
}

/** Replaces a result. */
export class Failure {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/** The input comes from a call that was typed by the same operation; the type is lost between threads. */
export function runUnit(unit: Unit, tx: Tx): Promise<unknown> {
  return unit.operation.run(tx, unit.input as never);
}

/** Finds operations by name; fails, naming the operation, when one is missing from the list or listed twice. */
export function indexOperations(operations: readonly Operation<never, unknown>[]): FindOperation {
  const byName = new Map<string, Operation<never, unknown>>();
  for (const operation of operations) {
    if (byName.has(operation.name)) throw new Error(`Two storage operations are named "${operation.name}"`);
    byName.set(operation.name, operation);
  }
  return (name) => byName.get(name) ?? unknownOperation(name);
}

function unknownOperation(name: string): Operation<never, unknown> {
  return {
    name,
    run: () => Promise.reject(new Error(`Unknown storage operation "${name}": add it to the list in storage.ts`)),
  };
}
