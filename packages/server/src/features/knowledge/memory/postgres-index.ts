import { fullTextFunctions } from '../../../kernel/db/full-text.ts';

/** Full-text index and triggers of step 20 as PostgreSQL has them; `migrations.ts` has the reasons. */
export const indexOnPostgres: readonly string[] = [
  ...fullTextFunctions,
  `CREATE TABLE memory_fts (rowid BIGINT PRIMARY KEY, body TSVECTOR NOT NULL)`,
  `CREATE INDEX memory_fts_by_word ON memory_fts USING gin (body)`,
  `CREATE FUNCTION memory_words(m memory) RETURNS tsvector LANGUAGE sql STABLE RETURN text_words(m.content) || array_to_tsvector(
    ARRAY[
      '=a' || text_hex(m.agent_id) || 'x',
      '=o' || text_hex(m.agent_id) || 'q' || text_hex(m.principal_id) || 'x',
      '=t' || m.trust_level || 'x',
      '=y' || m.memory_type || 'x'
    ] || ARRAY(SELECT '=g' || text_hex(tag) || 'x' FROM json_array_elements_text(m.tags::json) AS tag))`,
  // Not for each: those that come at the same time would read what the others delete.
  `CREATE FUNCTION memory_change_delete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM memory_change WHERE version <= NEW.version - 10000;
    RETURN NULL;
  END $$`,
  `CREATE TRIGGER memory_change_bound AFTER INSERT ON memory_change FOR EACH ROW WHEN (NEW.version % 100 = 0) EXECUTE FUNCTION memory_change_delete()`,
  `CREATE FUNCTION memory_index() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO memory_fts (rowid, body) VALUES (NEW.seq, memory_words(NEW)) ON CONFLICT (rowid) DO UPDATE SET body = excluded.body;
    INSERT INTO memory_change (seq) VALUES (NEW.seq);
    RETURN NULL;
  END $$`,
  `CREATE TRIGGER memory_added AFTER INSERT ON memory FOR EACH ROW EXECUTE FUNCTION memory_index()`,
  `CREATE TRIGGER memory_changed AFTER UPDATE OF agent_id, principal_id, memory_type, trust_level, tags, content, expires_at_ms, consolidated_at_ms ON memory
    FOR EACH ROW EXECUTE FUNCTION memory_index()`,
  `CREATE FUNCTION memory_note_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO memory_change (seq) VALUES (NEW.seq);
    RETURN NULL;
  END $$`,
  `CREATE TRIGGER memory_embedded AFTER INSERT ON memory_sign FOR EACH ROW EXECUTE FUNCTION memory_note_change()`,
  `CREATE FUNCTION memory_forget_vector() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM memory_vector WHERE seq = NEW.seq;
    DELETE FROM memory_sign WHERE seq = NEW.seq;
    UPDATE memory SET embedded_as = NULL WHERE seq = NEW.seq;
    RETURN NULL;
  END $$`,
  `CREATE TRIGGER memory_reworded AFTER UPDATE OF content ON memory FOR EACH ROW WHEN (OLD.content IS DISTINCT FROM NEW.content)
    EXECUTE FUNCTION memory_forget_vector()`,
  `CREATE FUNCTION memory_remove() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM memory_fts WHERE rowid = OLD.seq;
    DELETE FROM memory_vector WHERE seq = OLD.seq;
    DELETE FROM memory_sign WHERE seq = OLD.seq;
    DELETE FROM memory_source WHERE derived_id = OLD.id;
    INSERT INTO memory_change (seq) VALUES (OLD.seq);
    RETURN NULL;
  END $$`,
  `CREATE TRIGGER memory_removed AFTER DELETE ON memory FOR EACH ROW EXECUTE FUNCTION memory_remove()`,
];
