import type { RawBuilder } from 'kysely';
import { type TextMatch, toTextMatch } from '../../../../kernel/db/full-text.ts';
import { jsonSql } from '../../../../kernel/db/json-sql.ts';
import type { Dialect, QueryTools } from '../../../../kernel/db/operation.ts';
import type { MemoryType, TrustLevel } from '../api.ts';
import { everybody } from '../entries/store.ts';

type Sql = QueryTools<never>['sql'];

/** Entries that a search may find. */
export interface SearchFilter {
  readonly agentId: string;
  /** Entries of this owner and those for everybody; null: all of the agent. */
  readonly principalId: string | null;
  readonly types: readonly MemoryType[] | undefined;
  readonly trust: readonly TrustLevel[] | undefined;
  readonly tags: readonly string[];
  readonly includeDerivedSources: boolean;
  /** Entries that expired by then are excluded. */
  readonly atMs: number;
}

const hex = (text: string) => Buffer.from(text).toString('hex');

/** Finds all of the terms within the filter; see `part` in migrations.ts. Terms have letters and digits only. */
export function matchOf(filter: SearchFilter, words: readonly string[]): TextMatch {
  const agent = hex(filter.agentId);
  const either = (tokens: readonly string[]) => (tokens.length === 0 ? ['none'] : tokens);
  const filters = [
    filter.principalId === null ? [`a${agent}x`] : [filter.principalId, everybody].map((owner) => `o${agent}q${hex(owner)}x`),
    ...(filter.trust === undefined ? [] : [either(filter.trust.map((level) => `t${level}x`))]),
    ...(filter.types === undefined ? [] : [either(filter.types.map((type) => `y${type}x`))]),
    ...filter.tags.map((tag) => [`g${hex(tag)}x`]),
  ];
  return toTextMatch({ phrases: words, filters });
}

/** The same as conditions on the rows of `memory`. */
export function allowed(sql: Sql, dialect: Dialect, filter: SearchFilter): RawBuilder<boolean> {
  const conditions = [
    sql`memory.agent_id = ${filter.agentId}`,
    sql`(memory.expires_at_ms IS NULL OR memory.expires_at_ms > ${filter.atMs})`,
    ...(filter.principalId === null ? [] : [sql`memory.principal_id IN (${filter.principalId}, ${everybody})`]),
    ...(filter.trust === undefined ? [] : [oneOf(sql, dialect, 'memory.trustLevel', filter.trust)]),
    ...(filter.types === undefined ? [] : [oneOf(sql, dialect, 'memory.memoryType', filter.types)]),
    ...(filter.includeDerivedSources ? [] : [sql`memory.consolidated_at_ms IS NULL`]),
    ...(filter.tags.length === 0 ? [] : [hasTags(sql, dialect, filter.tags)]),
  ];
  return sql<boolean>`(${sql.join(conditions, sql` AND `)})`;
}

/** Whether a row of `memory` has all of some tags. */
export function hasTags(sql: Sql, dialect: Dialect, tags: readonly string[]): RawBuilder<unknown> {
  return sql.join(
    tags.map((tag) => sql`${tag} IN ${jsonSql(sql, dialect).texts(sql<string>`memory.tags`)}`),
    sql` AND `,
  );
}

function oneOf(sql: Sql, dialect: Dialect, column: string, values: readonly string[]): RawBuilder<unknown> {
  return sql`${sql.ref(column)} IN ${jsonSql(sql, dialect).texts(sql<string>`${JSON.stringify(values)}`)}`;
}
