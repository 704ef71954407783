import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { keepProcessAlive, systemClock } from '../../clock.ts';
import { watchHeartbeat } from '../../lifecycle/watchdog.ts';
import { Failure, indexOperations, type Unit } from '../unit.ts';
import { toWireError, type WireError } from '../wire-error.ts';
import { explainPostgresError } from './postgres-errors.ts';
import { checkPostgresServer, openPostgresSearch, openPostgresStorage, type PostgresParts } from './storage.ts';
import type { CallKind, FromThread, ThreadData, ToThread } from './wire.ts';

type Serve = (kind: CallKind, unit: Unit) => Promise<unknown>;

/** The body of the threads of this engine; `workerData` says which one it is. */
export function servePostgres(parts: PostgresParts): Promise<void> {
  // While it waits for a server that is not there yet, a thread has nothing but a timer.
  return keepProcessAlive(openParts(parts));
}

async function openParts(parts: PostgresParts): Promise<void> {
  const port = parentPort;
  if (port === null) throw new Error('servePostgres runs in a worker thread only');
  const send = (message: FromThread) => port.postMessage(message);
  const data = workerData as ThreadData;
  try {
    if (data.role === 'postgres-search') {
      const { search, close } = openPostgresSearch({ ...data, operations: parts.operations, clock: systemClock });
      send({ type: 'ready', schemaVersion: 0, programSchema: 0, applied: [], serverVersion: '', warnings: [] });
      return serveCalls(port, parts, (_, unit) => search(unit), close);
    }
    if (data.role === 'postgres-check') {
      const { version, warnings } = await checkPostgresServer({ ...data, clock: systemClock });
      send({ type: 'ready', schemaVersion: 0, programSchema: 0, applied: [], serverVersion: version, warnings });
      return port.close();
    }
    const storage = await openPostgresStorage({
      ...data,
      ...parts,
      clock: systemClock,
      onFenced: () => send({ type: 'fenced' }),
      onFault: (fault, reason) => send({ type: 'fault', fault, reason }),
    });
    const { schemaVersion, programSchema, applied, serverVersion, warnings } = storage;
    send({ type: 'ready', schemaVersion, programSchema, applied, serverVersion, warnings });
    if (data.heartbeat !== undefined) watchHeartbeat(data.heartbeat, { clock: systemClock });
    const serve = [storage.write, storage.telemetry, storage.read, async () => storage.bytes()];
    port.on('message', (message: ToThread) => {
      if (typeof message === 'object' && 'guard' in message) storage.guard(message.guard);
    });
    serveCalls(port, parts, (kind, unit) => (serve[kind] as (unit: Unit) => Promise<unknown>)(unit), storage.close);
  } catch (error) {
    send({ type: 'refused', error: toWireError(error) });
    port.close();
  }
}

function serveCalls(port: MessagePort, { operations }: PostgresParts, serve: Serve, close: () => Promise<void>): void {
  const findOperation = indexOperations(operations);
  let ids: number[] = [];
  let results: unknown[] = [];
  let isScheduled = false;

  function answer(id: number, result: unknown): void {
    ids.push(id);
    results.push(result);
    if (isScheduled) return;
    isScheduled = true;
    // All units of a commit are answered in one message.
    setImmediate(flush);
  }

  function flush(): void {
    isScheduled = false;
    postAnswers(port, ids, results);
    ids = [];
    results = [];
  }

  async function end(): Promise<void> {
    await close();
    // The answers of the last calls are scheduled already.
    setImmediate(() => port.close());
  }

  port.on('message', (message: unknown) => {
    if (message === 'close') return void end();
    if (!Array.isArray(message)) return;
    for (let at = 0; at < message.length; at += 4) {
      const id: number = message[at];
      const unit = { operation: findOperation(message[at + 2]), input: message[at + 3] as unknown };
      serve(message[at + 1] as CallKind, unit).then(
        (result) => answer(id, result),
        (error: unknown) => answer(id, new Failure(error)),
      );
    }
  });
}

function postAnswers(port: MessagePort, ids: readonly number[], results: unknown[]): void {
  const errors: [number, WireError][] = [];
  const fail = (index: number, error: unknown) => {
    results[index] = undefined;
    errors.push([index, toWireError(explainPostgresError(error))]);
  };
  for (const [index, result] of results.entries()) if (result instanceof Failure) fail(index, result.error);
  const send = () => port.postMessage({ type: 'answers', ids, results, ...(errors.length > 0 && { errors }) } satisfies FromThread);
  try {
    send();
  } catch {
    // One result is not plain data; the others must not fail because of it.
    for (const [index, result] of results.entries()) {
      try {
        structuredClone(result);
      } catch (error) {
        fail(index, error);
      }
    }
    send();
  }
}
