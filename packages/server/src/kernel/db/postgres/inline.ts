import { AppError } from '../../app-error.ts';
import { type Clock, systemClock } from '../../clock.ts';
import type { Db } from '../db.ts';
import type { Operation } from '../operation.ts';
import { Failure, indexOperations, type Unit } from '../unit.ts';
import { fromWireError, toWireError } from '../wire-error.ts';
import type { ServerAddress } from './server-address.ts';
import { placeOf, postgresBackups } from './place.ts';
import { explainPostgresError } from './postgres-errors.ts';
import { openPostgresSearch, openPostgresStorage, type PostgresParts, type PostgresStorage } from './storage.ts';

export interface InlinePostgresOptions extends PostgresParts {
  readonly address: ServerAddress;
  readonly poolSize?: number;
  readonly clock?: Clock;
  readonly onState?: (state: 'ok' | 'read_only') => void;
}

/**
 * Runs the same engine for tests and tools on the calling thread. Input, output and errors are serialized as between threads, so what would
 * not survive that fails here as well.
 */
export async function openInlinePostgres({
  poolSize = 4,
  clock = systemClock,
  onState,
  ...options
}: InlinePostgresOptions): Promise<Db & Pick<PostgresStorage, 'guard'>> {
  let state: 'ok' | 'read_only' = 'ok';
  const storage = await openPostgresStorage({
    ...options,
    poolSize,
    clock,
    programVersion: 'inline',
    onFault(fault) {
      state = fault === undefined ? 'ok' : 'read_only';
      onState?.(state);
    },
  });
  const findOperation = indexOperations(options.operations);
  let searches: ReturnType<typeof openPostgresSearch> | undefined;

  async function call<Output>(operation: Operation<never, Output>, input: unknown, serve: (unit: Unit) => Promise<unknown>): Promise<Output> {
    const result = await serve({ operation: findOperation(operation.name), input: structuredClone(input) });
    if (result instanceof Failure) throw fromWireError(structuredClone(toWireError(explainPostgresError(result.error))));
    return structuredClone(result) as Output;
  }

  return {
    write: (operation, input) => call(operation, input, storage.write),
    telemetry: (operation, input) => call(operation, input, storage.telemetry),
    read: (operation, input) => call(operation, input, storage.read),
    search: (operation, input) => call(operation, input, (unit) => (searches ??= openPostgresSearch({ ...options, clock })).search(unit)),
    guard: storage.guard,
    backup: () => Promise.reject(new AppError('precondition_failed', postgresBackups)),
    async status() {
      const { schemaVersion, serverVersion } = storage;
      return {
        driver: 'postgres',
        path: placeOf(options.address.url),
        bytes: storage.bytes(),
        walBytes: 0,
        schemaVersion,
        serverVersion,
        state,
      };
    },
    async [Symbol.asyncDispose]() {
      await searches?.close();
      await storage.close();
    },
  };
}
