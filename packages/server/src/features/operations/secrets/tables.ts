import type {} from '../../../kernel/db/tables.ts';

/** Rows of `secret`. */
interface SecretTable {
  readonly name: string;
  readonly sealed: string;
  readonly provider: string | null;
  readonly description: string | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly lastUsedAtMs: number | null;
  readonly usageCount: number;
  readonly expiresAtMs: number | null;
}

/** Rows of `secret_write`. */
interface SecretWriteTable {
  readonly id: string;
  readonly atMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly secret: SecretTable;
    readonly secretWrite: SecretWriteTable;
  }
}
