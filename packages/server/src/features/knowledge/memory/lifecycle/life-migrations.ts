import type {} from './tables.ts';
import type { Migration } from '../../../../kernel/db/operation.ts';

export const memoryLifeMigrations: readonly Migration[] = [
  {
    id: '021-memory-life',
    up: [
      // How far each conversation was reviewed; `tried_to_seq` is as far as a review that failed had come.
      `CREATE TABLE memory_review (
        agent_id TEXT NOT NULL,
        conversation_ref TEXT NOT NULL,
        reviewed_to_seq INTEGER NOT NULL,
        tried_to_seq INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        at_ms INTEGER NOT NULL,
        PRIMARY KEY (agent_id, conversation_ref)
      ) WITHOUT ROWID`,
      `CREATE INDEX memory_review_by_conversation ON memory_review (conversation_ref)`,
      // How far the entries of an agent were compared with each other.
      `CREATE TABLE memory_consolidation (agent_id TEXT PRIMARY KEY, examined_to_seq INTEGER NOT NULL, at_ms INTEGER NOT NULL) WITHOUT ROWID`,
      // Beside the rows, not in them: a column added behind their content would be dear to read.
      `CREATE TABLE memory_demotion (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL)`,
      `CREATE TRIGGER memory_demotion_removed AFTER DELETE ON memory BEGIN
        DELETE FROM memory_demotion WHERE seq = old.seq;
      END`,
    ],
    postgres: [
      `CREATE TABLE memory_review (
        agent_id TEXT NOT NULL,
        conversation_ref TEXT NOT NULL,
        reviewed_to_seq BIGINT NOT NULL,
        tried_to_seq BIGINT NOT NULL,
        failures BIGINT NOT NULL,
        at_ms BIGINT NOT NULL,
        PRIMARY KEY (agent_id, conversation_ref)
      )`,
      `CREATE INDEX memory_review_by_conversation ON memory_review (conversation_ref)`,
      `CREATE TABLE memory_consolidation (agent_id TEXT PRIMARY KEY, examined_to_seq BIGINT NOT NULL, at_ms BIGINT NOT NULL)`,
      `CREATE TABLE memory_demotion (seq BIGINT PRIMARY KEY, at_ms BIGINT NOT NULL)`,
      `CREATE FUNCTION memory_demotion_remove() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        DELETE FROM memory_demotion WHERE seq = OLD.seq;
        RETURN NULL;
      END $$`,
      `CREATE TRIGGER memory_demotion_removed AFTER DELETE ON memory FOR EACH ROW EXECUTE FUNCTION memory_demotion_remove()`,
    ],
  },
];
