import type {} from '../../../kernel/db/tables.ts';

/** Rows of `token`. */
interface TokenTable {
  readonly id: string;
  readonly digest: string;
  readonly scopesJson: string;
  readonly agentsJson: string | null;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  readonly compatJson: string | null;
}

/** Rows of `token_use`. */
interface TokenUseTable {
  readonly tokenId: string;
  readonly lastUsedAtMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly token: TokenTable;
    readonly tokenUse: TokenUseTable;
  }
}
