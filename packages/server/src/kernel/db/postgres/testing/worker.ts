import { migrations, operations } from '../../sqlite/testing/parts.ts';
import { servePostgres } from '../worker.ts';

await servePostgres({ operations, migrations });
