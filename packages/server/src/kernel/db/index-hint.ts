import type { RawBuilder } from 'kysely';
import type { QueryTools } from './operation.ts';

/** A column whose index SQLite must not choose; PostgreSQL chooses by statistics, and has no such hint. */
export function withoutIndex<T>({ sql, dialect }: Pick<QueryTools<never>, 'sql' | 'dialect'>, column: string): RawBuilder<T> {
  return dialect === 'sqlite' ? sql<T>`+${sql.ref(column)}` : sql<T>`${sql.ref(column)}`;
}
