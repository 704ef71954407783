import type { FindOperation, Operation } from '../operation.ts';
import { Failure, runUnit } from '../unit.ts';
import type { Connection } from './connection.ts';
import { type Link, maxWaitMs } from './link.ts';
import { isConflict, isConnectionFailure, isStaleStatement, LostConnection, sqlState } from './postgres-errors.ts';
import { createSession, type Session } from './session.ts';
import type { WriteUnit } from './transaction.ts';

const maxRetries = 4;

export interface ReadsOptions {
  readonly links: readonly Link[];
  readonly findOperation: FindOperation;
  /** Operations may keep state between calls, so none is run a second time to find out how many statements it has. */
  readonly stateful?: boolean;
}

/** Runs queries, each in its own snapshot. */
export interface Reads {
  add(unit: WriteUnit): Promise<unknown>;
  /** Resolves when nothing waits any more. */
  idle(): Promise<void>;
}

interface Reader {
  readonly link: Link;
  /** Kept for operations with state. */
  session: Session | undefined;
}

interface Entry {
  readonly unit: WriteUnit;
  readonly settle: (result: unknown) => void;
}

export function createReads({ links, findOperation, stateful = false }: ReadsOptions): Reads {
  /** Operations that were seen to run more than one statement: they need a transaction for their snapshot. */
  const several = new Set<Operation<never, unknown>>();
  const free: Reader[] = links.map((link) => ({ link, session: undefined }));
  const waiting: Entry[] = [];
  let awaited = 0;
  let onIdle: (() => void)[] = [];

  function dispatch(): void {
    for (let reader = waiting.length > 0 ? free.shift() : undefined; reader !== undefined; reader = waiting.length > 0 ? free.shift() : undefined)
      void serve(reader, waiting.shift() as Entry);
  }

  async function serve(reader: Reader, { unit, settle }: Entry): Promise<void> {
    settle(await read(reader, unit));
    // The one that was used last first: the others stay unconnected while one is enough.
    free.unshift(reader);
    awaited -= 1;
    dispatch();
    if (awaited > 0) return;
    const listeners = onIdle;
    onIdle = [];
    for (const listener of listeners) listener();
  }

  async function read(reader: Reader, unit: WriteUnit): Promise<unknown> {
    const { link } = reader;
    for (let tries = 0; ; tries++) {
      let connection: Connection;
      try {
        connection = await link.acquire(Math.max(unit.enteredAt, link.awaySince ?? 0) + maxWaitMs);
      } catch (error) {
        return new Failure(error);
      }
      const { result, failure } = await attempt(reader, connection, unit);
      if (!(result instanceof Failure)) return result;
      if (sqlState(failure) === '25006') return new Failure(new Error('This operation writes, and was called as a readonly one'));
      if (failure === undefined || tries >= maxRetries) return result;
      if (isStaleStatement(failure)) connection.drop(new LostConnection('The session of the database changed'));
      // A query changes nothing, so it may run again.
      if (connection.isOpen && !isConflict(failure) && !isConnectionFailure(failure)) return result;
    }
  }

  async function attempt(reader: Reader, connection: Connection, unit: WriteUnit): Promise<{ readonly result: unknown; readonly failure: unknown }> {
    if (stateful) return inSnapshot(sessionOf(reader, connection), unit);
    if (!several.has(unit.operation)) {
      // One statement is its own snapshot.
      const session = createSession(findOperation, connection);
      session.alone = true;
      const result = await settled(session, unit);
      session.ended = true;
      if (session.statements <= 1) return { result, failure: session.failure };
      several.add(unit.operation);
    }
    const session = createSession(findOperation, connection);
    const outcome = await inSnapshot(session, unit);
    session.ended = true;
    return outcome;
  }

  function sessionOf(reader: Reader, connection: Connection): Session {
    reader.session ??= createSession(findOperation, connection);
    reader.session.connection = connection;
    reader.session.failure = undefined;
    return reader.session;
  }

  async function inSnapshot(session: Session, unit: WriteUnit): Promise<{ readonly result: unknown; readonly failure: unknown }> {
    const { connection } = session;
    // The session begins read-only transactions with one snapshot.
    connection.send('BEGIN').catch((error: unknown) => (session.failure ??= error));
    const result = await settled(session, unit);
    connection.send('COMMIT').catch(() => {});
    return { result, failure: session.failure };
  }

  return {
    add(unit) {
      awaited += 1;
      return new Promise((settle) => {
        waiting.push({ unit, settle });
        dispatch();
      });
    },
    idle: () => (awaited === 0 ? Promise.resolve() : new Promise((resolve) => onIdle.push(resolve))),
  };
}

async function settled(session: Session, unit: WriteUnit): Promise<unknown> {
  try {
    return await runUnit(unit, session.tx);
  } catch (error) {
    return new Failure(error);
  }
}
