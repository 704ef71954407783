import type { CompiledQuery } from 'kysely';
import type { SqlValue } from './operation.ts';
import { Placeholder } from './query-tools.ts';
import { toSqlValue } from './sql-value.ts';

/** What a compiled query takes. */
export interface Binding {
  /** Names of parameters, in the order of the placeholders; a constant is in `constants` at the same index. */
  readonly names: readonly (string | undefined)[];
  readonly constants: readonly SqlValue[];
  /** Anything but a plain SELECT. */
  readonly writes: boolean;
}

export function bindingOf({ parameters, query }: CompiledQuery): Binding {
  return {
    names: parameters.map((value) => (value instanceof Placeholder ? value.name : undefined)),
    constants: parameters.map((value) => (value instanceof Placeholder ? null : toSqlValue(value, 'constant'))),
    writes: query.kind !== 'SelectQueryNode',
  };
}

/** Returns the values of one execution, in the order of the placeholders. */
export function bind(names: readonly (string | undefined)[], constants: readonly SqlValue[], params: unknown): SqlValue[] {
  const values: SqlValue[] = constants.slice();
  const given = params as Readonly<Record<string, unknown>>;
  for (let index = 0; index < names.length; index++) {
    const name = names[index];
    if (name !== undefined) values[index] = toSqlValue(given[name], name);
  }
  return values;
}
