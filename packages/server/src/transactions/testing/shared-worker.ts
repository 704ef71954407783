import { type MessagePort, parentPort } from 'node:worker_threads';
import type { ThreadData } from '../../kernel/db/sqlite/wire.ts';
import { serveStorage } from '../../kernel/db/sqlite/worker.ts';
import { migrations, operations } from '../registry.ts';

/** A storage thread for tests, which serves one database after the other: loading and compiling its modules costs more than most tests. */
parentPort?.on('message', ({ data, port }: { readonly data: ThreadData; readonly port: MessagePort }) => {
  void serveStorage({ operations, migrations }, data, port);
});
