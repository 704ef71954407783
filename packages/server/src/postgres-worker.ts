import { servePostgres } from './kernel/db/postgres/worker.ts';
import { migrations, operations } from './transactions/registry.ts';

await servePostgres({ operations, migrations });
