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
  readonly person: string | null;
  readonly limitsJson: string | null;
}

/** Rows of `token_use`. */
interface TokenUseTable {
  readonly tokenId: string;
  readonly lastUsedAtMs: number;
}

/** Rows of `revoked_secret`. */
interface RevokedSecretTable {
  readonly digest: string;
  readonly tokenId: string;
  readonly atMs: number;
}

/** Rows of `person`. */
interface PersonTable {
  readonly name: string;
  readonly principalId: string;
  readonly createdAtMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly token: TokenTable;
    readonly tokenUse: TokenUseTable;
    readonly revokedSecret: RevokedSecretTable;
    readonly person: PersonTable;
  }
}
