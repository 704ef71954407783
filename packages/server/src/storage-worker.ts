import { serveStorage } from './kernel/db/sqlite/worker.ts';
import { migrations, operations } from './storage.ts';

await serveStorage({ operations, migrations });
