import { AgentId, normalizeScopes, OwnerLimits, TokenCompat, TokenScope } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { Limits, TokenRecord } from './registry.ts';
import { digestOf, secretFault } from './secret.ts';
import type { TokenRow } from './store.ts';

interface ConfiguredToken {
  readonly id: string;
  readonly secret: string;
  readonly scopes: readonly TokenScope[];
  readonly agents?: readonly string[] | undefined;
  readonly compat?: TokenCompat | undefined;
  readonly person?: string | undefined;
  readonly budgets?: Limits['budgets'];
  readonly rateLimit?: Limits['rateLimit'];
  readonly expiresAt?: number | undefined;
}

/** Tokens that come from outside the database. */
export interface FixedTokens {
  /** Key of the digests; without it a copy of the database cannot be used to test a guess. */
  readonly pepper: Buffer;
  readonly configTokens: readonly ConfiguredToken[];
  /**
   * The token made at first start; scope `*`. The configuration and the database win where they have the same secret, and this one gets
   * another id where they have the same id.
   */
  readonly generatedToken?: { readonly id: string; readonly secret: string; readonly createdAt?: number | undefined } | undefined;
}

/** Returns what a token grants, as results show it. */
export function grantOf(record: TokenRecord): {
  scopes: TokenScope[];
  agents?: string[];
  compat?: TokenCompat;
  person?: string;
  budgets?: Limits['budgets'];
  rateLimit?: Limits['rateLimit'];
  expiresAt?: number;
} {
  return {
    scopes: [...record.scopes],
    ...(record.agents !== undefined && { agents: [...record.agents] }),
    ...(record.compat !== undefined && { compat: record.compat }),
    ...(record.person !== undefined && { person: record.person }),
    ...(record.budgets !== undefined && { budgets: record.budgets }),
    ...(record.rateLimit !== undefined && { rateLimit: record.rateLimit }),
    ...(record.expiresAtMs !== undefined && { expiresAt: record.expiresAtMs }),
  };
}

export function recordOf(row: TokenRow): TokenRecord {
  return {
    id: row.id,
    digest: row.digest,
    source: 'created',
    scopes: z.array(TokenScope).parse(parseJson(row.scopesJson)),
    agents: row.agentsJson === null ? undefined : z.array(AgentId).parse(parseJson(row.agentsJson)),
    compat: row.compatJson === null ? undefined : TokenCompat().parse(parseJson(row.compatJson)),
    person: row.person ?? undefined,
    ...(row.limitsJson !== null && z.strictObject(OwnerLimits()).parse(parseJson(row.limitsJson))),
    createdAtMs: row.createdAtMs,
    expiresAtMs: row.expiresAtMs ?? undefined,
  };
}

/** Returns the row of a stored token. */
export function rowOf({ id, digest, scopes, agents, compat, person, budgets, rateLimit, createdAtMs, expiresAtMs }: TokenRecord): TokenRow {
  return {
    id,
    digest,
    scopesJson: JSON.stringify(scopes),
    agentsJson: agents === undefined ? null : JSON.stringify(agents),
    compatJson: compat === undefined ? null : JSON.stringify(compat),
    person: person ?? null,
    limitsJson: budgets === undefined && rateLimit === undefined ? null : JSON.stringify({ budgets, rateLimit }),
    createdAtMs: createdAtMs ?? 0,
    expiresAtMs: expiresAtMs ?? null,
  };
}

/** Id of the generated token where the configuration has taken the usual one. */
const otherGeneratedId = 'token-file';

/** What the database knows about tokens of files. */
export interface KnownTokens {
  /** Digests of secrets that were revoked or rotated: they grant no access, whatever the file says. */
  readonly revoked: ReadonlySet<string>;
  readonly stored: readonly TokenRow[];
}

/** Digests tokens that come from outside the database; their secrets are forgotten. Fails when one is unusable. */
export function fixedRecords({ pepper, configTokens, generatedToken }: FixedTokens, { revoked, stored }: KnownTokens): TokenRecord[] {
  const records: TokenRecord[] = [];
  const add = (where: string, token: ConfiguredToken & { readonly createdAt?: number | undefined }, source: TokenRecord['source']): void => {
    const fault = secretFault(token.secret);
    if (fault !== undefined) throw new AppError('precondition_failed', `${where}: the secret of token "${token.id}" ${fault}`);
    const digest = digestOf(pepper, token.secret);
    const same = records.find((other) => other.id === token.id || other.digest === digest);
    if (same !== undefined)
      throw new AppError('precondition_failed', `${where}: token "${token.id}" has the ${same.id === token.id ? 'id' : 'secret'} of another token`);
    if (revoked.has(digest) || (source === 'generated' && stored.some((row) => row.digest === digest))) return;
    records.push({
      id: token.id,
      digest,
      source,
      scopes: normalizeScopes(token.scopes),
      agents: token.agents,
      compat: token.compat,
      person: token.person,
      budgets: token.budgets,
      rateLimit: token.rateLimit,
      createdAtMs: token.createdAt,
      expiresAtMs: token.expiresAt,
    });
  };
  configTokens.forEach((token, index) => add(`gateway.tokens.${index}`, token, 'config'));
  if (generatedToken === undefined || configTokens.some(({ secret }) => secret === generatedToken.secret)) return records;
  const isTaken = [...configTokens, ...stored].some(({ id }) => id === generatedToken.id);
  add('token file', { ...generatedToken, ...(isTaken && { id: otherGeneratedId }), scopes: ['*'] }, 'generated');
  return records;
}
