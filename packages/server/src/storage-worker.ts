import { serveStorage } from './kernel/db/sqlite/worker.ts';
import { migrations, operations } from './transactions/registry.ts';

await serveStorage({ operations, migrations });
