import { buildIn } from './patch.ts';

/** Queries the database on the thread of the event loop before each write. */
buildIn({
  name: 'query-on-main',
  module: 'kernel/db/sqlite/open-db.ts',
  replace: [
    { from: "import { mkdirSync } from 'node:fs';", to: "import { mkdirSync } from 'node:fs';\nimport { DatabaseSync } from 'node:sqlite';" },
    {
      from: 'return this.#liveWriter().call(callKinds.write, operation.name, input) as Promise<Output>;',
      to: `const db = new DatabaseSync(this.#file, { readOnly: true });
    db.prepare('WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT count(*) FROM n').get();
    db.close();
    return this.#liveWriter().call(callKinds.write, operation.name, input) as Promise<Output>;`,
    },
  ],
});
