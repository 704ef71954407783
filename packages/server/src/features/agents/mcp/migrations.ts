import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const mcpMigrations: readonly Migration[] = [
  {
    id: '028-mcp-servers',
    up: [
      `CREATE TABLE mcp_server (
        name TEXT PRIMARY KEY,
        transport TEXT NOT NULL,
        url TEXT NOT NULL,
        headers_sealed TEXT NOT NULL,
        agents_json TEXT,
        enabled INTEGER NOT NULL,
        created_at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
    ],
  },
  {
    id: '175-mcp-authorizations',
    up: [
      `CREATE TABLE mcp_authorization (
        server TEXT PRIMARY KEY,
        version TEXT NOT NULL,
        sealed TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        authorized_at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
      `CREATE TABLE mcp_authorization_flow (
        state_digest TEXT PRIMARY KEY,
        server TEXT NOT NULL,
        sealed TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        token_id TEXT NOT NULL,
        created_at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
    ],
  },
];
