import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { AppError } from '../../app-error.ts';
import { systemClock } from '../../clock.ts';
import { watchHeartbeat } from '../../lifecycle/watchdog.ts';
import type { Migration, Operation } from '../operation.ts';
import { Failure, indexOperations, type Unit } from '../unit.ts';
import { toWireError } from '../wire-error.ts';
import { postAnswers } from './answers.ts';
import { backupDatabase } from './backup.ts';
import { openReader } from './connection.ts';
import { databaseFile } from './database-files.ts';
import type { GroupCommit } from './group-commit.ts';
import { replacedFiles, watchPlace } from './in-place.ts';
import { openFiles, openForQueries } from './open-files.ts';
import { quickCheck } from './quick-check.ts';
import type { Session } from './statements.ts';
import { explainSqliteError } from './sqlite-errors.ts';
import { tryWrite } from './try-write.ts';
import { type CallKind, callKinds, type FromThread, type ThreadData } from './wire.ts';

/** What a storage thread knows: every operation, and every step of the schema. */
export interface StorageParts {
  readonly operations: readonly Operation<never, unknown>[];
  readonly migrations: readonly Migration[];
}

interface Call extends Unit {
  readonly kind: CallKind;
}

/** Units per commit: more would only delay the first of them. */
const maxBatch = 512;

/** The body of every storage thread; `data` says which one it is. It closes the port when it is done. */
export async function serveStorage(parts: StorageParts, data = workerData as ThreadData, port: MessagePort | null = parentPort): Promise<void> {
  if (port === null) throw new Error('serveStorage runs in a worker thread only');
  const send = (message: FromThread) => port.postMessage(message);
  try {
    switch (data.role) {
      case 'writer': {
        const { main, telemetry, schemaVersion, applied } = await openFiles({ ...data, migrations: parts.migrations });
        send({ type: 'ready', schemaVersion, applied });
        if (data.heartbeat !== undefined) watchHeartbeat(data.heartbeat, { clock: systemClock });
        await serveCalls(port, parts, data.dataDir, main, telemetry);
        return;
      }
      case 'reader':
      case 'search':
        send({ type: 'ready', schemaVersion: 0, applied: [] });
        await serveCalls(port, parts, data.dataDir, undefined, undefined);
        return;
      case 'backup': {
        // A good backup must not be overwritten by a bad one; the caller can remove the old one first.
        if (existsSync(data.targetFile)) throw new AppError('conflict', `${data.targetFile} exists already: name another file`);
        const result = await backupDatabase(data.sourceFile, data.targetFile, (done, total) => send({ type: 'progress', done, total }));
        send({ type: 'done', result });
        break;
      }
      case 'check': {
        const db = openReader(data.file);
        quickCheck(db, data.file);
        db.close();
        send({ type: 'done', result: undefined });
        break;
      }
    }
  } catch (error) {
    send({ type: 'refused', error: toWireError(explainSqliteError(error)) });
  }
  port.close();
}

async function serveCalls(
  port: MessagePort,
  parts: StorageParts,
  dataDir: string,
  main: DatabaseSync | undefined,
  telemetry: DatabaseSync | undefined,
): Promise<void> {
  // The query builder is loaded while the main thread continues to start.
  const [{ createGroupCommit, runInSnapshot }, { createSession }] = await Promise.all([import('./group-commit.ts'), import('./statements.ts')]);
  const findOperation = indexOperations([...parts.operations, tryWrite]);
  const mainCommit = main === undefined ? undefined : createGroupCommit(main, findOperation);
  const telemetryCommit = telemetry === undefined ? undefined : createGroupCommit(telemetry, findOperation);
  const file = databaseFile(dataDir);
  const findMove = watchPlace([file, `${file}-wal`]);
  findMove();
  let queries: Session | undefined;
  const inbox: Call[] = [];
  let closing = false;
  let busy = false;

  function accept(message: unknown): void {
    if (message === 'close') closing = true;
    if (!Array.isArray(message)) return;
    for (let index = 0; index < message.length; index += 3) {
      inbox.push({ kind: message[index], operation: findOperation(message[index + 1]), input: message[index + 2] });
    }
  }

  function acceptWaiting(): void {
    for (let waiting = receiveMessageOnPort(port); waiting !== undefined; waiting = receiveMessageOnPort(port)) accept(waiting.message);
  }

  async function drain(): Promise<void> {
    busy = true;
    for (acceptWaiting(); inbox.length > 0; acceptWaiting()) await answer(inbox.splice(0, maxBatch));
    busy = false;
    if (!closing) return;
    queries?.db.close();
    for (const db of [telemetry, main]) {
      db?.exec('PRAGMA wal_checkpoint(TRUNCATE)');
      db?.close();
    }
    port.close();
  }

  async function answer(calls: readonly Call[]): Promise<void> {
    const results: unknown[] = Array.from({ length: calls.length });
    const stored = await commitKind(calls, callKinds.write, mainCommit, results);
    // What was committed to a file that is no longer there must not be acknowledged.
    const move = stored ? findMove() : undefined;
    if (move !== undefined) fillKind(calls, callKinds.write, results, () => new Failure(new AppError('unavailable', replacedFiles(move))));
    const storedTelemetry = await commitKind(calls, callKinds.telemetry, telemetryCommit, results);
    // After the commits, so that a query sees every write that was requested before it.
    for (const [index, call] of calls.entries()) {
      if (call.kind === callKinds.read) results[index] = await query(call);
    }
    const isTelemetry = (index: number) => calls[index]?.kind === callKinds.telemetry;
    postAnswers(port, results, { stored, storedTelemetry, moved: move !== undefined, isTelemetry });
  }

  async function query(call: Call): Promise<unknown> {
    try {
      queries ??= createSession(openForQueries(dataDir), findOperation);
    } catch (error) {
      // The files may be back when the next query comes.
      return new Failure(new AppError('unavailable', 'The database cannot be read: its files in data/ cannot be opened', { cause: error }));
    }
    return runInSnapshot(queries, call);
  }

  async function commitKind(calls: readonly Call[], kind: CallKind, commit: GroupCommit | undefined, results: unknown[]): Promise<boolean> {
    // In most batches all calls are of one kind.
    const units = calls.every((call) => call.kind === kind) ? calls : calls.filter((call) => call.kind === kind);
    if (units.length === 0) return false;
    const outcome =
      commit === undefined
        ? { results: units.map(() => new Failure(new Error('This database has no tables: add a migration for it'))), stored: false }
        : await commit.commit(units);
    let next = 0;
    fillKind(calls, kind, results, () => outcome.results[next++]);
    return outcome.stored;
  }

  port.on('message', (message: unknown) => {
    accept(message);
    if (!busy) void drain();
  });
}

function fillKind(calls: readonly Call[], kind: CallKind, results: unknown[], resultOf: () => unknown): void {
  for (let index = 0; index < calls.length; index++) {
    if (calls[index]?.kind === kind) results[index] = resultOf();
  }
}
