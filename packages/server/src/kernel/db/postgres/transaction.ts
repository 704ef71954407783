import { randomInt } from 'node:crypto';
import type { QueryResult } from 'pg';
import type { Clock } from '../../clock.ts';
import type { FindOperation, Tx } from '../operation.ts';
import { Failure, runUnit, type Unit } from '../unit.ts';
import type { Connection, ServerLife } from './connection.ts';
import { FencedOut, type Guard, guardStatement } from './guard.ts';
import { findOutcome } from './in-doubt.ts';
import { type Link, maxWaitMs } from './link.ts';
import {
  inDoubt,
  isConflict,
  isConnectionFailure,
  isDiskFailure,
  isStaleStatement,
  LostConnection,
  sqlState,
  unreachable,
} from './postgres-errors.ts';
import { createSession, type Session } from './session.ts';

/** A write, with the time at which it was asked for. */
export interface WriteUnit extends Unit {
  readonly enteredAt: number;
}

/** How often a transaction runs again after a conflict; a batch is split earlier, because a part of it may meet nobody. */
const maxRetries = 8;
const maxBatchRetries = 2;
const firstPauseMs = 4;
const maxPauseMs = 250;

type Attempt =
  | { readonly kind: 'done'; readonly results: readonly unknown[] }
  /** A unit failed after it had written, or a statement did: nothing was kept. `units` are those that may have been the reason. */
  | { readonly kind: 'failed'; readonly units: Range; readonly error: unknown }
  | { readonly kind: 'conflict'; readonly error: unknown }
  /** Another daemon may write instead of this one: nothing was kept. */
  | { readonly kind: 'fenced'; readonly error: FencedOut }
  /** The connection ended before the commit: nothing was kept. */
  | { readonly kind: 'lost'; readonly error: unknown }
  /** It ended during the commit. */
  | ({ readonly kind: 'doubt'; readonly results: readonly unknown[]; readonly error: unknown } & Begun);

/** Units from `from` up to, not including, `to`. */
interface Range {
  readonly from: number;
  readonly to: number;
}

export interface TransactionsOptions {
  readonly link: Link;
  readonly findOperation: FindOperation;
  readonly clock: Clock;
  /** What each transaction proves; absent: any may write. */
  readonly guard: () => Guard | undefined;
  /** A commit was refused by the guard. */
  readonly onFenced: () => void;
  /** The disk of the server refused a write. */
  readonly onDiskFailure: (error: unknown) => void;
}

/** Runs writes on one connection: those of a call share a transaction as long as none fails. */
export interface Transactions {
  /** Returns one result for each unit, in order; a `Failure` for each that failed. */
  run(units: readonly WriteUnit[]): Promise<readonly unknown[]>;
}

export function createTransactions({ link, findOperation, clock, guard, onFenced, onDiskFailure }: TransactionsOptions): Transactions {
  async function run(units: readonly WriteUnit[]): Promise<readonly unknown[]> {
    let conflicts = 0;
    let lostAt: number | undefined;
    for (;;) {
      let connection: Connection;
      try {
        connection = await acquire(units);
      } catch (error) {
        return units.map(() => new Failure(error));
      }
      const attempt = await attemptOn(createSession(findOperation, connection), units);
      switch (attempt.kind) {
        case 'done':
          return attempt.results;
        case 'failed':
          if (units.length === 1) return [new Failure(attempt.error)];
          return split(units, attempt.units);
        case 'conflict':
          conflicts += 1;
          if (units.length > 1 && conflicts > maxBatchRetries) return split(units, { from: 0, to: units.length });
          if (conflicts > maxRetries) return units.map(() => new Failure(attempt.error));
          await pause(conflicts);
          break;
        case 'fenced':
          onFenced();
          return units.map(() => new Failure(attempt.error));
        case 'lost':
          lostAt ??= clock.monotonic();
          // A connection that is lost again and again is as good as none.
          if (clock.monotonic() > lostAt + maxWaitMs) return units.map(() => new Failure(unreachable(attempt.error)));
          break;
        case 'doubt': {
          const outcome = await findOutcome(attempt, link, clock);
          if (outcome === 'committed') return attempt.results;
          if (outcome === 'unknown') return units.map(() => new Failure(inDoubt(attempt.error)));
          break;
        }
      }
    }
  }

  /** Runs the units around the suspects again without them; each suspect alone, because another unit may have been the reason. */
  async function split(units: readonly WriteUnit[], { from, to }: Range): Promise<readonly unknown[]> {
    const results: unknown[] = [];
    for (const part of [units.slice(0, from), ...units.slice(from, to).map((unit) => [unit]), units.slice(to)])
      if (part.length > 0) results.push(...(await run(part)));
    return results;
  }

  /** A call that waited in the queue of a busy lane has not waited for a connection. */
  function acquire(units: readonly WriteUnit[]): Promise<Connection> {
    const now = clock.monotonic();
    const since = Math.max(units[0]?.enteredAt ?? now, link.awaySince ?? now);
    return link.acquire(since + maxWaitMs);
  }

  async function attemptOn(own: Session, units: readonly WriteUnit[]): Promise<Attempt> {
    try {
      return await runUnits(own, units);
    } finally {
      own.ended = true;
    }
  }

  async function runUnits(own: Session, units: readonly WriteUnit[]): Promise<Attempt> {
    const { connection } = own;
    const begun = begin(connection, units, guard());
    const results: unknown[] = [];
    for (let index = 0; index < units.length; index = results.length) {
      const range = { from: index, to: endOfBulk(units, index) };
      own.wrote = false;
      let failure: unknown;
      try {
        if (range.to - index === 1) results.push(await runUnit(units[index] as WriteUnit, own.tx));
        else results.push(...(await runBulk(units.slice(index, range.to), own.tx)));
      } catch (error) {
        failure = error;
        // Nothing of a bulk form is known to have worked.
        if (range.to - index > 1) return abandon(connection, range, await reasonOf(begun, own.failure ?? error));
        results.push(new Failure(error));
      }
      // An operation that swallows an error of the server must not let later units run in a dead transaction.
      if (own.failure !== undefined) return abandon(connection, range, await reasonOf(begun, own.failure));
      if (failure !== undefined && own.wrote) return abandon(connection, range, failure);
    }
    own.ended = true;
    return commit(begun, results, own);
  }

  function abandon(connection: Connection, units: Range, error: unknown): Attempt {
    if (isDiskFailure(error)) onDiskFailure(error);
    if (isStaleStatement(error)) connection.drop(new LostConnection('The session of the database changed'));
    if (!connection.isOpen || isConnectionFailure(error)) {
      connection.drop(toError(error));
      return { kind: 'lost', error };
    }
    connection.send('ROLLBACK').catch(() => {});
    if (error instanceof FencedOut) return { kind: 'fenced', error };
    return isConflict(error) ? { kind: 'conflict', error } : { kind: 'failed', units, error };
  }

  async function commit(begun: Promise<Begun>, results: readonly unknown[], own: Session): Promise<Attempt> {
    const { connection } = own;
    const all = { from: 0, to: results.length };
    // Known before the commit is sent: without it a lost answer could not be asked for again.
    let started: Begun;
    try {
      started = await begun;
    } catch (error) {
      return abandon(connection, all, error);
    }
    try {
      const { command } = await connection.send('COMMIT');
      // A statement that no operation waited for has failed.
      if (command !== 'COMMIT') return abandon(connection, all, own.failure ?? new Error('The transaction was rolled back'));
      return { kind: 'done', results };
    } catch (error) {
      if (!connection.isOpen || isConnectionFailure(error)) {
        connection.drop(toError(error));
        return { kind: 'doubt', results, error, ...started };
      }
      return abandon(connection, all, error);
    }
  }

  async function pause(conflicts: number): Promise<void> {
    const longest = Math.min(firstPauseMs * 2 ** conflicts, maxPauseMs);
    await new Promise<void>((resolve) => clock.after(randomInt(longest), resolve));
  }

  return { run };
}

interface Begun extends ServerLife {
  readonly xid: string;
}

/** Starts the transaction along with its first statement: nothing waits for the answer until the commit. */
function begin(connection: Connection, units: readonly Unit[], guard: Guard | undefined): Promise<Begun> {
  const isolation = units.every(({ operation }) => operation.isolation === 'read committed') ? 'READ COMMITTED' : 'SERIALIZABLE';
  const proof = guard === undefined ? '' : `; ${guardStatement(guard)}`;
  const begun = connection.send(`BEGIN ISOLATION LEVEL ${isolation}; SELECT pg_current_xact_id()::text AS xid${proof}`).then((results) => {
    const [, { rows } = { rows: [] }, proven] = results as unknown as readonly QueryResult<{ xid: string }>[];
    if (guard !== undefined && proven?.rows.length !== 1) throw new FencedOut();
    return { xid: rows[0]?.xid ?? '', ...connection.facts };
  });
  begun.catch(() => {});
  return begun;
}

/** The error of a statement in a transaction whose first statements have failed says only that; the reason is theirs. */
async function reasonOf(begun: Promise<Begun>, error: unknown): Promise<unknown> {
  return sqlState(error) === '25P02'
    ? begun.then(
        () => error,
        (reason: unknown) => reason,
      )
    : error;
}

/** Returns where the run of units ends that a bulk form takes from `index` on. */
function endOfBulk(units: readonly WriteUnit[], index: number): number {
  const accepts = (unit: WriteUnit | undefined) => unit?.operation === first && first?.bulk?.accepts(unit?.input as never) === true;
  const first = units[index]?.operation;
  let end = index;
  while (accepts(units[end])) end += 1;
  return Math.max(end, index + 1);
}

async function runBulk(units: readonly WriteUnit[], tx: Tx): Promise<readonly unknown[]> {
  const results = await units[0]?.operation.bulk?.run(
    tx,
    units.map(({ input }) => input as never),
  );
  if (results?.length !== units.length) throw new Error(`The bulk form of "${units[0]?.operation.name}" did not answer each input`);
  return results;
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
