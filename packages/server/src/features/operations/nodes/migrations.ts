import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const nodeMigrations: readonly Migration[] = [
  {
    id: '140-nodes',
    up: [
      // One row per boot of a daemon. `claimed_by` is the boot that took over what this one left; '' while nobody did.
      `CREATE TABLE node (
        boot_id TEXT PRIMARY KEY,
        home_id TEXT NOT NULL,
        address TEXT,
        version TEXT NOT NULL,
        role TEXT NOT NULL,
        state TEXT NOT NULL,
        lease_until_ms INTEGER NOT NULL,
        started_at_ms INTEGER NOT NULL,
        renewed_at_ms INTEGER NOT NULL,
        claimed_by TEXT NOT NULL
      ) WITHOUT ROWID`,
    ],
  },
  {
    id: '160-active-node',
    up: [
      // One row: the boot that may write, and how often it changed; '' while there is none. Used on PostgreSQL alone.
      `CREATE TABLE active_node (
        id INTEGER PRIMARY KEY,
        boot_id TEXT NOT NULL,
        fence INTEGER NOT NULL,
        since_ms INTEGER NOT NULL,
        schema_version INTEGER NOT NULL
      )`,
      `INSERT INTO active_node VALUES (1, '', 0, 0, 0)`,
      // One row: which install key the rows were written with.
      `CREATE TABLE installation (
        id INTEGER PRIMARY KEY,
        key_fingerprint TEXT NOT NULL
      )`,
    ],
  },
];
