import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const knowledgeMigrations: readonly Migration[] = [
  {
    id: '330-knowledge-sources',
    up: [
      `CREATE TABLE knowledge_file (
        id TEXT PRIMARY KEY,
        agent_id TEXT NOT NULL,
        source TEXT NOT NULL,
        place TEXT NOT NULL,
        path TEXT NOT NULL,
        stamp TEXT NOT NULL,
        digest TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        passages INTEGER NOT NULL,
        problem TEXT,
        indexed_at_ms INTEGER NOT NULL
      ) WITHOUT ROWID`,
      `CREATE INDEX knowledge_file_by_source ON knowledge_file (agent_id, source)`,
      // The text of a passage is an entry of the search index (table memory), under the same id.
      `CREATE TABLE knowledge_passage (
        memory_id TEXT PRIMARY KEY,
        file_id TEXT NOT NULL,
        position INTEGER NOT NULL,
        part INTEGER NOT NULL,
        label TEXT NOT NULL
      ) WITHOUT ROWID`,
      `CREATE INDEX knowledge_passage_by_file ON knowledge_passage (file_id, part)`,
    ],
  },
];
