import { EventEmitter } from 'node:events';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { StartStorageThread } from '@gatehouse/server';

/** Threads of this process that serve no database at the moment. */
const idle = new Set<Worker>();
const ended = new WeakSet<Worker>();

/** Takes an idle thread for a database, or starts one from the module at `url`; it is idle again once the database is closed. */
export const takeStorageThread =
  (url: URL): StartStorageThread =>
  (data) => {
    const [known] = idle;
    const worker = known ?? startThread(url);
    idle.delete(worker);
    return new Lease(worker, data);
  };

function startThread(url: URL): Worker {
  const worker = new Worker(url, { execArgv: [], name: 'storage' });
  // The ports of open databases keep the process alive.
  worker.unref();
  worker.once('exit', () => {
    ended.add(worker);
    idle.delete(worker);
  });
  return worker;
}

/** One thread as one database sees it: it ends when the database is closed. */
class Lease extends EventEmitter {
  readonly #worker: Worker;
  readonly #port: MessagePort;

  constructor(worker: Worker, data: unknown) {
    super();
    const { port1, port2 } = new MessageChannel();
    this.#worker = worker;
    this.#port = port1;
    const fail = (error: Error) => this.emit('error', error);
    worker.on('error', fail);
    port1.on('message', (message) => this.emit('message', message));
    port1.on('messageerror', (error) => this.emit('messageerror', error));
    port1.once('close', () => {
      worker.off('error', fail);
      if (!ended.has(worker)) idle.add(worker);
      this.emit('exit', 0);
    });
    worker.postMessage({ data, port: port2 }, [port2]);
  }

  postMessage(message: unknown): void {
    this.#port.postMessage(message);
  }

  terminate(): Promise<number> {
    return this.#worker.terminate();
  }
}
