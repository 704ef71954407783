import { AgentId, normalizeScopes, TokenCompat, TokenScope } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { AuditRow } from '../../../kernel/db/audit.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { newId } from '../../../kernel/ids.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { Log } from '../../../kernel/log.ts';
import type { TokensApi } from './api.ts';
import { type Grant, widerThan } from './minting.ts';
import { TokenRegistry, type TokenRecord } from './registry.ts';
import { digestOf, newSecret, secretFault } from './secret.ts';
import { deleteToken, insertToken, listTokens, recordRefusal, recordUses, replaceToken, rotateToken, type TokenRow } from './store.ts';

export interface ConfiguredToken {
  readonly id: string;
  readonly secret: string;
  readonly scopes: readonly TokenScope[];
  readonly agents?: readonly string[] | undefined;
  readonly compat?: TokenCompat | undefined;
  readonly expiresAt?: number | undefined;
}

export interface TokensDeps {
  readonly db: Db;
  /** Key of the digests; without it a copy of the database cannot be used to test a guess. */
  readonly pepper: Buffer;
  readonly configTokens: readonly ConfiguredToken[];
  /** The token made at first start; scope `*`. */
  readonly generatedToken?: { readonly id: string; readonly secret: string; readonly createdAt?: number | undefined } | undefined;
  readonly clock: Clock;
  readonly bus: EventBus;
  readonly log: Log;
}

export interface Tokens extends AsyncDisposable {
  readonly api: TokensApi;
  readonly methods: HandlersOf<`tokens.${'list' | 'create' | 'revoke' | 'rotate'}`>;
}

/** Concurrent rotations arrive one after another; those within this time of the winner lost to it. */
const rotationMs = 1_000;
const usesMs = 60_000;
const storeMessage = 'Store the secret now: it is not shown again.';

/** Access tokens of config.yaml, of the first start, and those created by `tokens.create`, all served from memory. Fails when a configured one is unusable. */
export async function createTokens(deps: TokensDeps): Promise<Tokens> {
  const { db, clock, log } = deps;
  const registry = new TokenRegistry(deps.pepper, clock);
  const rotatedAt = new Map<string, number>();

  const { tokens: rows, uses } = await db.read(listTokens, {});
  for (const row of rows) registry.put(recordOf(row));
  for (const record of fixedRecords(deps)) {
    if (registry.find(record.id) !== undefined)
      log.warn({ tokenId: record.id }, 'A configured token has the id of a stored one, which no longer grants access');
    registry.put(record);
  }
  for (const use of uses) if (registry.find(use.tokenId) !== undefined) registry.setLastUsed(use.tokenId, use.atMs);
  let cancelUses = clock.after(usesMs, flushUses);

  function flushUses(): void {
    cancelUses = clock.after(usesMs, flushUses);
    void saveUses();
  }

  async function saveUses(): Promise<void> {
    const taken = registry.takeUses();
    if (taken.length === 0) return;
    try {
      await db.write(recordUses, { uses: taken });
    } catch (error) {
      log.warn({ err: error }, 'Failed to store the last use of tokens');
    }
  }

  function audit(call: CallContext, action: string, target: string, more: Partial<Pick<AuditRow, 'outcome' | 'metadata'>> = {}): AuditRow {
    return auditRow(call, clock.now(), { actionType: action, classification: 'security', target, ...more });
  }

  /** Refuses a grant that is wider than the caller, and records the attempt. */
  async function mayGrant(call: CallContext, action: string, id: string, grant: Grant): Promise<void> {
    const fault = widerThan(call.identity, grant);
    if (fault === undefined) return;
    const row = audit(call, action, id, { outcome: 'denied', metadata: { reason: fault } });
    await db.write(recordRefusal, { audit: row });
    announceAudit(deps.bus, row);
    throw new AppError('denied', `Token ${id}: ${fault}`);
  }

  /** A token whose life is governed here, not by the configuration. */
  function changeable(id: string, what: string): TokenRecord {
    const record = registry.find(id);
    if (record === undefined) throw new AppError('not_found', `Token not found: ${id}`, { param: 'id' });
    if (record.source === 'config')
      throw new AppError('precondition_failed', `Token ${id} is defined in config.yaml (gateway.tokens): ${what} it there and restart`);
    if (record.source === 'generated')
      throw new AppError(
        'precondition_failed',
        `Token ${id} was created at first start and lives in the token file of the home folder: ${what} it there and restart`,
      );
    return record;
  }

  const methods: Tokens['methods'] = {
    'tokens.list': async () => {
      const tokens = registry.list().map((record) => {
        const lastUsedAt = registry.lastUsed(record.id);
        return {
          id: record.id,
          source: record.source,
          ...grantOf(record),
          ...(record.createdAtMs !== undefined && { createdAt: record.createdAtMs }),
          ...(lastUsedAt !== undefined && { lastUsedAt }),
        };
      });
      return { tokens, total: tokens.length };
    },

    'tokens.create': async ({ id: wanted, scopes: asked, agents, expiresAt, compat, replace }, call) => {
      const id = wanted ?? newId('tk');
      const scopes = normalizeScopes(asked);
      const now = clock.now();
      if (expiresAt !== undefined && expiresAt <= now)
        throw new AppError('invalid_params', 'expiresAt: expected a time in the future', {
          issues: [{ path: 'expiresAt', message: 'expected a time in the future' }],
        });
      await mayGrant(call, 'tokens.create', id, { scopes, agents, expiresAt });
      if (registry.find(id) !== undefined && replace !== true)
        throw new AppError(
          'conflict',
          `Token already exists: ${id}${registry.current(id) === undefined ? ' (it has expired: revoke it first)' : ''}`,
          { param: 'id' },
        );
      const former = registry.find(id) === undefined ? undefined : changeable(id, 'replace');
      const secret = newSecret();
      const row: TokenRow = {
        id,
        digest: digestOf(deps.pepper, secret),
        scopesJson: JSON.stringify(scopes),
        agentsJson: agents === undefined ? null : JSON.stringify(agents),
        compatJson: compat === undefined ? null : JSON.stringify(compat),
        createdAtMs: now,
        expiresAtMs: expiresAt ?? null,
      };
      const entry = audit(call, 'tokens.create', id, { metadata: { scopes, ...(compat !== undefined && { compat: JSON.stringify(compat) }) } });
      if (former === undefined) {
        if (!(await db.write(insertToken, { row, audit: entry }))) throw new AppError('conflict', `Token already exists: ${id}`, { param: 'id' });
      } else if (!(await db.write(replaceToken, { row, oldDigest: former.digest, audit: entry })))
        throw new AppError('conflict', `Token ${id} was rotated or revoked at the same time`);
      const record = recordOf(row);
      registry.put(record);
      announceAudit(deps.bus, entry);
      return { id, secret, ...grantOf(record), createdAt: now, message: storeMessage };
    },

    'tokens.revoke': async ({ id }, call) => {
      changeable(id, 'remove');
      const entry = audit(call, 'tokens.revoke', id);
      if (!(await db.write(deleteToken, { id, audit: entry }))) throw new AppError('not_found', `Token not found: ${id}`, { param: 'id' });
      registry.remove(id);
      announceAudit(deps.bus, entry);
      return { id, revoked: true as const, message: 'The token no longer grants access.' };
    },

    'tokens.rotate': async ({ id }, call) => {
      const record = changeable(id, 'replace');
      await mayGrant(call, 'tokens.rotate', id, grantOf(record));
      if (registry.current(id) === undefined) throw new AppError('precondition_failed', `Token ${id} has expired: revoke it and create another one`);
      const now = clock.now();
      const last = rotatedAt.get(id);
      if (last !== undefined && now - last < rotationMs) throw new AppError('conflict', `Token ${id} was rotated a moment ago`);
      const secret = newSecret();
      const newDigest = digestOf(deps.pepper, secret);
      const entry = audit(call, 'tokens.rotate', id);
      if (!(await db.write(rotateToken, { id, oldDigest: record.digest, newDigest, atMs: now, audit: entry })))
        throw new AppError('conflict', `Token ${id} was rotated or revoked at the same time`);
      rotatedAt.set(id, clock.now());
      registry.put({ ...record, digest: newDigest, createdAtMs: now });
      announceAudit(deps.bus, entry);
      return { id, secret, ...grantOf(record), createdAt: now, rotated: true as const, message: storeMessage };
    },
  };

  return {
    api: registry,
    methods,
    async [Symbol.asyncDispose]() {
      cancelUses();
      registry.dispose();
      await saveUses();
    },
  };
}

function grantOf(record: TokenRecord): { scopes: TokenScope[]; agents?: string[]; compat?: TokenCompat; expiresAt?: number } {
  return {
    scopes: [...record.scopes],
    ...(record.agents !== undefined && { agents: [...record.agents] }),
    ...(record.compat !== undefined && { compat: record.compat }),
    ...(record.expiresAtMs !== undefined && { expiresAt: record.expiresAtMs }),
  };
}

function recordOf(row: TokenRow): TokenRecord {
  return {
    id: row.id,
    digest: row.digest,
    source: 'created',
    scopes: z.array(TokenScope).parse(parseJson(row.scopesJson)),
    agents: row.agentsJson === null ? undefined : z.array(AgentId).parse(parseJson(row.agentsJson)),
    compat: row.compatJson === null ? undefined : TokenCompat.parse(parseJson(row.compatJson)),
    createdAtMs: row.createdAtMs,
    expiresAtMs: row.expiresAtMs ?? undefined,
  };
}

/** Tokens that come from outside the database; their secrets are forgotten once they are digested. */
function fixedRecords({ pepper, configTokens, generatedToken }: TokensDeps): TokenRecord[] {
  const records: TokenRecord[] = [];
  const add = (where: string, token: ConfiguredToken & { readonly createdAt?: number | undefined }, source: TokenRecord['source']): void => {
    const fault = secretFault(token.secret);
    if (fault !== undefined) throw new AppError('precondition_failed', `${where}: the secret of token "${token.id}" ${fault}`);
    const digest = digestOf(pepper, token.secret);
    const same = records.find((other) => other.id === token.id || other.digest === digest);
    if (same !== undefined)
      throw new AppError('precondition_failed', `${where}: token "${token.id}" has the ${same.id === token.id ? 'id' : 'secret'} of another token`);
    records.push({
      id: token.id,
      digest,
      source,
      scopes: normalizeScopes(token.scopes),
      agents: token.agents,
      compat: token.compat,
      createdAtMs: token.createdAt,
      expiresAtMs: token.expiresAt,
    });
  };
  configTokens.forEach((token, index) => add(`gateway.tokens.${index}`, token, 'config'));
  if (generatedToken !== undefined) add('token file', { ...generatedToken, scopes: ['*'] }, 'generated');
  return records;
}
