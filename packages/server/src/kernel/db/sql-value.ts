import type { SqlValue } from './operation.ts';

/** Returns what the database keeps for a value. @throws TypeError for one that it cannot keep */
export function toSqlValue(value: unknown, name: string): SqlValue {
  switch (typeof value) {
    case 'string':
      return value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value;
    case 'bigint':
      return value;
    case 'number':
      // SQLite stores NaN as NULL, PostgreSQL refuses it for an integer: both would hide a fault of the caller.
      if (Number.isNaN(value)) throw new TypeError(`SQL parameter "${name}" is not a number`);
      return value;
    case 'boolean':
      return value ? 1 : 0;
    case 'undefined':
      return null;
    default:
      if (value === null || value instanceof Uint8Array) return value;
      throw new TypeError(`SQL parameter "${name}" must be a string, number, boolean, bigint, bytes or null`);
  }
}
