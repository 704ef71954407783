import type { RawBuilder } from 'kysely';
import type { QueryTools } from './operation.ts';

/** What a full-text index is asked for, in the words of both engines; the parameters of a query that uses `isMatch`. */
export interface TextMatch {
  /** Expression of FTS5. */
  readonly match: string;
  /** Phrases in quotes, for PostgreSQL. */
  readonly phrases: string;
  /** Expression of `tsquery` for the filters; empty for none. */
  readonly tokens: string;
}

export interface TextConditions {
  /** Words, or words that follow each other, of letters, their marks and digits only; all are required. */
  readonly phrases: readonly string[];
  /** Tokens of letters and digits that the entry was filed under; of each group one is required. */
  readonly filters: readonly (readonly string[])[];
}

export function toTextMatch({ phrases, filters }: TextConditions): TextMatch {
  const quoted = phrases.map((phrase) => `"${phrase}"`);
  return {
    match: [...filters.map((tokens) => `part : (${tokens.join(' OR ')})`), ...quoted.map((phrase) => `body : ${phrase}`)].join(' AND '),
    phrases: quoted.join(' '),
    tokens: filters.map((tokens) => `(${tokens.map((token) => `'=${token}'`).join(' | ')})`).join(' & '),
  };
}

/** Whether a row of a full-text table matches. FTS5 takes the name of its table for all of its columns; PostgreSQL has words and tokens in `body`. */
export function isMatch<T extends TextMatch>(
  { sql, dialect, p }: Pick<QueryTools<T>, 'sql' | 'dialect' | 'p'>,
  table: 'message_fts' | 'memory_fts',
): RawBuilder<boolean> {
  const name = sql.raw(table);
  if (dialect === 'sqlite') return sql<boolean>`${name} match ${p('match')}`;
  return sql<boolean>`${name}.body @@ (text_query(${p('phrases')}) && ${p('tokens')}::tsquery)`;
}

/** Most characters of a text that PostgreSQL indexes: a vector of words holds at most 1 MiB. */
const indexedLength = 200_000;
const wordTypes = `asciiword, word, numword, asciihword, hword, numhword, hword_asciipart, hword_part, hword_numpart, int, uint, float, sfloat, version,
  email, url, url_path, host, file, tag, entity, protocol`;

/** The beginning of a word in which a vowel is followed by a consonant. */
const measured = '[a-z]*[aeiouy][b-df-hj-np-tv-xz][a-z]*';

/**
 * Statements that make PostgreSQL return the words of FTS5's `porter unicode61`: without case and accents, as stems of Porter, no stop words. Every migration that makes an index
 * lists them, since each feature can have its tables alone. Tokens begin with `=`, which no word does.
 * FTS5 has the author's later rules for `logi` and `bli`, which the algorithm as published lacks: here such words are spelled as others of the same stem.
 */
export const fullTextFunctions: readonly string[] = [
  `DO $$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_ts_config WHERE cfgname = 'gatehouse' AND cfgnamespace = current_schema()::regnamespace) THEN
      CREATE TEXT SEARCH DICTIONARY gatehouse_stem (TEMPLATE = snowball, LANGUAGE = porter);
      CREATE TEXT SEARCH CONFIGURATION gatehouse (PARSER = "default");
      ALTER TEXT SEARCH CONFIGURATION gatehouse ADD MAPPING FOR ${wordTypes} WITH gatehouse_stem;
    END IF;
  END $$`,
  `CREATE OR REPLACE FUNCTION text_fold(body text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN regexp_replace(regexp_replace(regexp_replace(normalize(lower(left(body, ${indexedLength})), NFD), '[\\u0300-\\u036f]', '', 'g'),
      '(${measured})log(?:y|ies)\\M', '\\1logic', 'g'), '(${measured})bl(?:y|ies)\\M', '\\1ble', 'g')`,
  `CREATE OR REPLACE FUNCTION text_words(body text) RETURNS tsvector LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN to_tsvector('gatehouse'::regconfig, left(regexp_replace(text_fold(body), '[^[:alnum:]]+', ' ', 'g'), ${indexedLength}))`,
  `CREATE OR REPLACE FUNCTION text_query(phrases text) RETURNS tsquery LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN websearch_to_tsquery('gatehouse'::regconfig, regexp_replace(text_fold(phrases), '[^[:alnum:]"]+', ' ', 'g'))`,
  `CREATE OR REPLACE FUNCTION text_hex(body text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN encode(convert_to(body, 'UTF8'), 'hex')`,
];
