import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';
import { toPostgres } from '../../../kernel/db/postgres/schema.ts';
import { indexOnPostgres } from './postgres-index.ts';

/**
 * Tokens of a row that queries filter by, inside the match itself. Hex digits hold no separator, so no name can imitate
 * another; the `x` at the end keeps the stemmer away, which looks at endings.
 */
const part = `
  'a' || hex(new.agent_id) || 'x o' || hex(new.agent_id) || 'q' || hex(new.principal_id) || 'x t' || new.trust_level || 'x y' || new.memory_type
  || 'x' || coalesce((SELECT ' g' || group_concat(hex(value), 'x g') || 'x' FROM json_each(new.tags)), '')`;

/** What both engines have. */
const tables: readonly string[] = [
  // `content` comes last: a scan for the columns before it does not follow it to further pages.
  `CREATE TABLE memory (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        tenant_id TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        principal_id TEXT NOT NULL,
        memory_type TEXT NOT NULL,
        trust_level TEXT NOT NULL,
        taint_level TEXT NOT NULL,
        source_who TEXT NOT NULL,
        source_channel TEXT,
        conversation_ref TEXT,
        session_key TEXT,
        tags TEXT NOT NULL,
        created_at_ms INTEGER NOT NULL,
        updated_at_ms INTEGER,
        expires_at_ms INTEGER,
        proof_count INTEGER NOT NULL DEFAULT 0,
        confidence REAL,
        consolidated_at_ms INTEGER,
        pinned INTEGER NOT NULL DEFAULT 0,
        use_count INTEGER NOT NULL DEFAULT 0,
        last_used_at_ms INTEGER,
        failure_count INTEGER NOT NULL DEFAULT 0,
        embedded_as TEXT,
        content TEXT NOT NULL
      )`,
  `CREATE INDEX memory_by_agent ON memory (agent_id, created_at_ms)`,
  `CREATE INDEX memory_by_owner ON memory (agent_id, principal_id, created_at_ms)`,
  `CREATE INDEX memory_by_conversation ON memory (conversation_ref) WHERE conversation_ref IS NOT NULL`,
  `CREATE INDEX memory_by_expiry ON memory (expires_at_ms) WHERE expires_at_ms IS NOT NULL`,
  `CREATE INDEX memory_by_embedding ON memory (embedded_as)`,
  `CREATE TABLE memory_source (
        id INTEGER PRIMARY KEY,
        derived_id TEXT NOT NULL,
        source_id TEXT,
        conversation_ref TEXT
      )`,
  `CREATE INDEX memory_source_by_derived ON memory_source (derived_id)`,
  `CREATE INDEX memory_source_by_source ON memory_source (source_id) WHERE source_id IS NOT NULL`,
  `CREATE INDEX memory_source_by_conversation ON memory_source (conversation_ref) WHERE conversation_ref IS NOT NULL`,
  `CREATE TABLE memory_vector (seq INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, vector BLOB NOT NULL)`,
  // Signs stand apart from the vectors, so that reading all of them does not read all of those.
  `CREATE TABLE memory_sign (seq INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, signs BLOB NOT NULL)`,
  // What the search thread has to read again; it begins anew when it missed more than is kept.
  `CREATE TABLE memory_change (version INTEGER PRIMARY KEY AUTOINCREMENT, seq INTEGER NOT NULL)`,
];

export const memoryMigrations: readonly Migration[] = [
  {
    id: '020-memory',
    up: [
      ...tables,
      `CREATE VIRTUAL TABLE memory_fts USING fts5 (body, part, content='', contentless_delete=1, tokenize='porter unicode61')`,
      `CREATE TRIGGER memory_change_bound AFTER INSERT ON memory_change BEGIN
        DELETE FROM memory_change WHERE version <= new.version - 10000;
      END`,
      // Triggers, so that no way of changing a row can leave an index behind.
      `CREATE TRIGGER memory_added AFTER INSERT ON memory BEGIN
        INSERT INTO memory_fts (rowid, body, part) VALUES (new.seq, new.content, ${part});
        INSERT INTO memory_change (seq) VALUES (new.seq);
      END`,
      `CREATE TRIGGER memory_changed AFTER UPDATE OF agent_id, principal_id, memory_type, trust_level, tags, content, expires_at_ms, consolidated_at_ms ON memory BEGIN
        UPDATE memory_fts SET body = new.content, part = ${part} WHERE rowid = new.seq;
        INSERT INTO memory_change (seq) VALUES (new.seq);
      END`,
      `CREATE TRIGGER memory_embedded AFTER INSERT ON memory_sign BEGIN
        INSERT INTO memory_change (seq) VALUES (new.seq);
      END`,
      `CREATE TRIGGER memory_reworded AFTER UPDATE OF content ON memory WHEN old.content IS NOT new.content BEGIN
        DELETE FROM memory_vector WHERE seq = new.seq;
        DELETE FROM memory_sign WHERE seq = new.seq;
        UPDATE memory SET embedded_as = NULL WHERE seq = new.seq;
      END`,
      `CREATE TRIGGER memory_removed AFTER DELETE ON memory BEGIN
        DELETE FROM memory_fts WHERE rowid = old.seq;
        DELETE FROM memory_vector WHERE seq = old.seq;
        DELETE FROM memory_sign WHERE seq = old.seq;
        DELETE FROM memory_source WHERE derived_id = old.id;
        INSERT INTO memory_change (seq) VALUES (old.seq);
      END`,
    ],
    postgres: [...toPostgres(tables), ...indexOnPostgres],
  },
  {
    // May be lost with the power: it only saves asking again.
    id: '023-embedding-cache',
    database: 'telemetry',
    up: [
      `CREATE TABLE embedding_cache (
        fingerprint TEXT NOT NULL,
        text_hash BLOB NOT NULL,
        vector BLOB NOT NULL,
        used_at_ms INTEGER NOT NULL,
        PRIMARY KEY (fingerprint, text_hash)
      ) WITHOUT ROWID`,
      `CREATE INDEX embedding_cache_by_use ON embedding_cache (used_at_ms)`,
    ],
  },
];
