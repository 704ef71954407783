import { serveStorage } from './kernel/db/sqlite/worker.ts';
import { migrations, operations } from './transactions/registry.ts';

// Not awaited: the build makes CommonJS of this file.
void serveStorage({ operations, migrations });
