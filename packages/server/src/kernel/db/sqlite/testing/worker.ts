import { serveStorage } from '../worker.ts';
import { migrations, operations } from './parts.ts';

await serveStorage({ operations, migrations });
