import { normalizeScopes, type Params, type ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { AuditRow } from '../../../kernel/db/audit.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { newId } from '../../../kernel/ids.ts';
import type { SecretsApi } from '../../operations/secrets/api.ts';
import { type Grant, widerThan } from './minting.ts';
import { grantOf, recordOf } from './records.ts';
import type { TokenRecord, TokenRegistry } from './registry.ts';
import { digestOf, newSecret } from './secret.ts';
import { deleteToken, insertToken, recordRefusal, replaceToken, rotateToken, type TokenRow } from './store.ts';

export interface TokenChangesDeps {
  readonly db: Db;
  /** Key of the digests; without it a copy of the database cannot be used to test a guess. */
  readonly pepper: Buffer;
  readonly clock: Clock;
  readonly bus: EventBus;
  /** Replaces the stored secret that a token of config.yaml refers to; returns keys that need a restart, undefined where it refers to none. */
  readonly rotateConfigured: SecretsApi['rotateToken'];
}

/** Concurrent rotations arrive one after another; those within this time of the winner lost to it. */
const rotationMs = 1_000;
const storeMessage = 'Store the secret now: it is not shown again.';

/** Creates, replaces, rotates and removes stored tokens, each with its audit row. */
export class TokenChanges {
  readonly #deps: TokenChangesDeps;
  readonly #registry: TokenRegistry;
  readonly #rotatedAt = new Map<string, number>();

  constructor(deps: TokenChangesDeps, registry: TokenRegistry) {
    this.#deps = deps;
    this.#registry = registry;
  }

  async create(
    { id: wanted, scopes: asked, agents, expiresAt, compat, replace }: Params<'tokens.create'>,
    call: CallContext,
  ): Promise<ResultInput<'tokens.create'>> {
    const { bus, clock, pepper } = this.#deps;
    const id = wanted ?? newId('tk');
    const scopes = normalizeScopes(asked);
    const now = clock.now();
    if (expiresAt !== undefined && expiresAt <= now)
      throw new AppError('invalid_params', 'expiresAt: expected a time in the future', {
        issues: [{ path: 'expiresAt', message: 'expected a time in the future' }],
      });
    await this.#refuseWider(call, 'tokens.create', id, { scopes, agents, expiresAt });
    const former = this.#replaceable(id, replace === true);
    const secret = newSecret();
    const row: TokenRow = {
      id,
      digest: digestOf(pepper, secret),
      scopesJson: JSON.stringify(scopes),
      agentsJson: agents === undefined ? null : JSON.stringify(agents),
      compatJson: compat === undefined ? null : JSON.stringify(compat),
      createdAtMs: now,
      expiresAtMs: expiresAt ?? null,
    };
    const audit = this.#audit(call, 'tokens.create', id, { metadata: { scopes, ...(compat !== undefined && { compat: JSON.stringify(compat) }) } });
    await this.#save(row, former, audit);
    const record = recordOf(row);
    this.#registry.put(record);
    announceAudit(bus, audit);
    return { id, secret, ...grantOf(record), createdAt: now, message: storeMessage };
  }

  async revoke(id: string, call: CallContext): Promise<ResultInput<'tokens.revoke'>> {
    const { db, bus } = this.#deps;
    this.#changeable(id, 'remove');
    const audit = this.#audit(call, 'tokens.revoke', id);
    if (!(await db.write(deleteToken, { id, audit }))) throw new AppError('not_found', `Token not found: ${id}`, { param: 'id' });
    this.#registry.remove(id);
    announceAudit(bus, audit);
    return { id, revoked: true as const, message: 'The token no longer grants access.' };
  }

  async rotate(id: string, call: CallContext): Promise<ResultInput<'tokens.rotate'>> {
    const { db, bus, clock, pepper } = this.#deps;
    if (this.#registry.find(id)?.source === 'config') return this.#rotateConfigured(id, call);
    const record = this.#changeable(id, 'replace');
    await this.#refuseWider(call, 'tokens.rotate', id, grantOf(record));
    if (this.#registry.current(id) === undefined)
      throw new AppError('precondition_failed', `Token ${id} has expired: revoke it and create another one`);
    const now = clock.now();
    const last = this.#rotatedAt.get(id);
    if (last !== undefined && now - last < rotationMs) throw new AppError('conflict', `Token ${id} was rotated a moment ago`);
    const secret = newSecret();
    const newDigest = digestOf(pepper, secret);
    const audit = this.#audit(call, 'tokens.rotate', id);
    if (!(await db.write(rotateToken, { id, oldDigest: record.digest, newDigest, atMs: now, audit })))
      throw new AppError('conflict', `Token ${id} was rotated or revoked at the same time`);
    this.#rotatedAt.set(id, clock.now());
    this.#registry.put({ ...record, digest: newDigest, createdAtMs: now });
    announceAudit(bus, audit);
    return { id, secret, ...grantOf(record), createdAt: now, rotated: true as const, message: storeMessage };
  }

  /** Rotates a token whose secret in config.yaml is a reference to a stored secret: the registry follows the configuration. */
  async #rotateConfigured(id: string, call: CallContext): Promise<ResultInput<'tokens.rotate'>> {
    const { clock, rotateConfigured } = this.#deps;
    const record = this.#registry.find(id);
    if (record === undefined) throw new AppError('not_found', `Token not found: ${id}`, { param: 'id' });
    await this.#refuseWider(call, 'tokens.rotate', id, grantOf(record));
    const now = clock.now();
    const last = this.#rotatedAt.get(id);
    if (last !== undefined && now - last < rotationMs) throw new AppError('conflict', `Token ${id} was rotated a moment ago`);
    const secret = newSecret();
    this.#rotatedAt.set(id, now);
    const restart = await rotateConfigured(id, secret, call).catch((error: unknown) => {
      this.#rotatedAt.delete(id);
      throw error;
    });
    if (restart === undefined) {
      this.#rotatedAt.delete(id);
      this.#changeable(id, 'replace');
    }
    const message = restart?.some((key) => key.startsWith('gateway')) === true ? `${storeMessage} It is valid after a restart.` : storeMessage;
    return { id, secret, ...grantOf(record), createdAt: now, rotated: true as const, message };
  }

  async #save(row: TokenRow, former: TokenRecord | undefined, audit: AuditRow): Promise<void> {
    const { db } = this.#deps;
    if (former === undefined) {
      if (!(await db.write(insertToken, { row, audit }))) throw new AppError('conflict', `Token already exists: ${row.id}`, { param: 'id' });
    } else if (!(await db.write(replaceToken, { row, oldDigest: former.digest, audit })))
      throw new AppError('conflict', `Token ${row.id} was rotated or revoked at the same time`);
  }

  /** Refuses a grant that is wider than the caller, and records the attempt. */
  async #refuseWider(call: CallContext, action: string, id: string, grant: Grant): Promise<void> {
    const { db, bus } = this.#deps;
    const fault = widerThan(call.identity, grant);
    if (fault === undefined) return;
    const audit = this.#audit(call, action, id, { outcome: 'denied', metadata: { reason: fault } });
    await db.write(recordRefusal, { audit });
    announceAudit(bus, audit);
    throw new AppError('denied', `Token ${id}: ${fault}`);
  }

  /** Returns the token that a new one of this id replaces, if any. */
  #replaceable(id: string, replace: boolean): TokenRecord | undefined {
    if (this.#registry.find(id) === undefined) return undefined;
    if (!replace) {
      const hint = this.#registry.current(id) === undefined ? ' (it has expired: revoke it first)' : '';
      throw new AppError('conflict', `Token already exists: ${id}${hint}`, { param: 'id' });
    }
    return this.#changeable(id, 'replace');
  }

  /** Returns a token whose life is governed here, not by the configuration. */
  #changeable(id: string, verb: string): TokenRecord {
    const record = this.#registry.find(id);
    if (record === undefined) throw new AppError('not_found', `Token not found: ${id}`, { param: 'id' });
    if (record.source === 'config')
      throw new AppError('precondition_failed', `Token ${id} is defined in config.yaml (gateway.tokens): ${verb} it there`);
    if (record.source === 'generated')
      throw new AppError(
        'precondition_failed',
        `Token ${id} was created at first start and lives in the token file of the home folder: ${verb} it there and restart`,
      );
    return record;
  }

  #audit(call: CallContext, action: string, target: string, more: Partial<Pick<AuditRow, 'outcome' | 'metadata'>> = {}): AuditRow {
    return auditRow(call, this.#deps.clock.now(), { actionType: action, classification: 'security', target, ...more });
  }
}
