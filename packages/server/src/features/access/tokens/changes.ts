import { normalizeScopes, type Params, type ResultInput } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { AuditRow } from '../../../kernel/db/audit.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { newId } from '../../../kernel/ids.ts';
import { documentValue, type Edit } from '../../../kernel/config/edit.ts';
import type { Log } from '../../../kernel/log.ts';
import type { SecretsApi } from '../../operations/secrets/api.ts';
import type { SettingsApi } from '../../operations/settings/api.ts';
import { type Grant, widerThan } from './minting.ts';
import type { Owners } from './owners.ts';
import { grantOf, rowOf } from './records.ts';
import type { TokenRecord, TokenRegistry } from './registry.ts';
import { digestOf, newSecret } from './secret.ts';
import { addPersons, deleteToken, insertToken, recordRefusal, replaceToken, revokeSecret, rotateToken, type TokenRow } from './store.ts';

export interface TokenChangesDeps {
  readonly db: Db;
  /** Key of the digests; without it a copy of the database cannot be used to test a guess. */
  readonly pepper: Buffer;
  readonly clock: Clock;
  readonly bus: EventBus;
  readonly log: Log;
  /** Replaces the stored secret that a token of config.yaml refers to; returns keys that need a restart, undefined where it refers to none. */
  readonly rotateConfigured: SecretsApi['rotateToken'];
  readonly settings: Pick<SettingsApi, 'change'>;
  readonly owners: Pick<Owners, 'refresh'>;
  /** The file with the token of the first start. */
  readonly tokenFile: TokenFile;
}

export interface TokenFile {
  /** Returns the secret in the file; undefined when there is none. */
  read(): string | undefined;
  /** Replaces it; an empty text means that there is no such token, and that no new one is made. */
  write(secret: string): void;
}

/** Concurrent rotations arrive one after another; those within this time of the winner lost to it. */
const rotationMs = 1_000;
const storeMessage = 'Store the secret now: it is not shown again.';

/** Creates, replaces, rotates and removes tokens: stored ones, those of config.yaml and that of the first start, each with its audit row. */
export class TokenChanges {
  readonly #deps: TokenChangesDeps;
  readonly #registry: TokenRegistry;
  readonly #rotatedAt = new Map<string, number>();

  constructor(deps: TokenChangesDeps, registry: TokenRegistry) {
    this.#deps = deps;
    this.#registry = registry;
  }

  async create(
    { id: wanted, scopes: asked, agents, expiresAt, compat, person, budgets, rateLimit, replace }: Params<'tokens.create'>,
    call: CallContext,
  ): Promise<ResultInput<'tokens.create'>> {
    const { bus, clock, pepper } = this.#deps;
    const id = wanted ?? newId('tk');
    if (person !== undefined && budgets !== undefined) {
      const message = `expected none for a token of a person: its budgets are those of persons.${person}.budgets`;
      throw new AppError('invalid_params', `budgets: ${message}`, { issues: [{ path: 'budgets', message }], param: 'budgets' });
    }
    const scopes = normalizeScopes(asked);
    const now = clock.now();
    if (expiresAt !== undefined && expiresAt <= now)
      throw new AppError('invalid_params', 'expiresAt: expected a time in the future', {
        issues: [{ path: 'expiresAt', message: 'expected a time in the future' }],
      });
    await this.#refuseWider(call, 'tokens.create', id, { scopes, agents, expiresAt });
    const former = this.#replaceable(id, replace === true);
    const secret = newSecret();
    const record: TokenRecord = {
      id,
      digest: digestOf(pepper, secret),
      source: 'created',
      scopes,
      agents,
      compat,
      person,
      budgets,
      rateLimit,
      createdAtMs: now,
      expiresAtMs: expiresAt,
    };
    const audit = this.#audit(call, 'tokens.create', id, {
      metadata: { scopes, ...(person !== undefined && { person }), ...(compat !== undefined && { compat: JSON.stringify(compat) }) },
    });
    await this.meetPersons([record]);
    await this.#save(rowOf(record), former, audit);
    this.#registry.put(record);
    announceAudit(bus, audit);
    if (former !== undefined) await this.#retire(former);
    await this.#deps.owners.refresh();
    return { id, secret, ...grantOf(record), createdAt: now, message: storeMessage };
  }

  /** Adds persons that these tokens are the first to have. */
  async meetPersons(
    records: readonly TokenRecord[],
    wasUsed: (tokenId: string) => boolean = (id) => this.#registry.lastUsed(id) !== undefined,
  ): Promise<void> {
    const { persons } = this.#registry;
    const missing = persons.missing(records, wasUsed);
    if (missing.length > 0) persons.load(await this.#deps.db.write(addPersons, { persons: missing, atMs: this.#deps.clock.now() }));
  }

  async revoke(id: string, call: CallContext): Promise<ResultInput<'tokens.revoke'>> {
    const { db, bus, clock } = this.#deps;
    const record = this.#found(id);
    const audit = this.#audit(call, 'tokens.revoke', id);
    if (record.source === 'config') await this.#revokeConfigured(record, call);
    else {
      if (record.source === 'generated') await db.write(revokeSecret, { revoked: { digest: record.digest, tokenId: id, atMs: clock.now() }, audit });
      else if (!(await db.write(deleteToken, { id, audit }))) throw unknownToken(id);
      this.#registry.remove(id);
      announceAudit(bus, audit);
    }
    await this.#retire(record);
    await this.#deps.owners.refresh();
    return { id, revoked: true as const, message: 'The token no longer grants access.' };
  }

  async rotate(id: string, call: CallContext): Promise<ResultInput<'tokens.rotate'>> {
    const { db, bus, clock, pepper } = this.#deps;
    if (this.#registry.find(id)?.source === 'config') return this.#rotateConfigured(id, call);
    const record = this.#found(id);
    await this.#refuseWider(call, 'tokens.rotate', id, grantOf(record));
    if (this.#registry.current(id) === undefined)
      throw new AppError('precondition_failed', `Token ${id} has expired: revoke it and create another one`);
    const now = clock.now();
    const last = this.#rotatedAt.get(id);
    if (last !== undefined && now - last < rotationMs) throw new AppError('conflict', `Token ${id} was rotated a moment ago`);
    const secret = newSecret();
    const newDigest = digestOf(pepper, secret);
    const audit = this.#audit(call, 'tokens.rotate', id);
    const rotated: TokenRecord = { ...record, digest: newDigest, createdAtMs: now, source: 'created' };
    const restore = this.#isInFile(record.digest) ? this.#writeFile(secret) : undefined;
    const revoked = { digest: record.digest, tokenId: id, atMs: now };
    // The token of the first start is a stored one from then on, so that every daemon of the database knows its secret.
    const write = () =>
      record.source === 'generated'
        ? db.write(revokeSecret, { revoked, row: rowOf(rotated), audit })
        : db.write(rotateToken, { id, oldDigest: record.digest, newDigest, atMs: now, audit });
    const isDone = await write().catch((error: unknown) => {
      restore?.();
      throw error;
    });
    if (!isDone) {
      restore?.();
      throw rotatedMeanwhile(id);
    }
    this.#rotatedAt.set(id, clock.now());
    this.#registry.put(rotated);
    if (restore !== undefined) await this.#bury(record);
    announceAudit(bus, audit);
    return { id, secret, ...grantOf(record), createdAt: now, rotated: true as const, message: storeMessage };
  }

  /** Rotates a token whose secret in config.yaml is a reference to a stored secret: the registry follows the configuration. */
  async #rotateConfigured(id: string, call: CallContext): Promise<ResultInput<'tokens.rotate'>> {
    const { clock, rotateConfigured } = this.#deps;
    const record = this.#found(id);
    await this.#refuseWider(call, 'tokens.rotate', id, grantOf(record));
    const now = clock.now();
    const last = this.#rotatedAt.get(id);
    if (last !== undefined && now - last < rotationMs) throw new AppError('conflict', `Token ${id} was rotated a moment ago`);
    const secret = newSecret();
    this.#rotatedAt.set(id, now);
    const rotate = async () => (await rotateConfigured(id, secret, call)) ?? (await this.#rotateLiteral(record, secret, call));
    const restart = await rotate().catch((error: unknown) => {
      this.#rotatedAt.delete(id);
      throw error;
    });
    await this.#bury(record);
    await this.#retire(record);
    const message = restart.some((key) => key.startsWith('gateway')) ? `${storeMessage} It is valid after a restart.` : storeMessage;
    return { id, secret, ...grantOf(record), createdAt: now, rotated: true as const, message };
  }

  /** Writes another secret into config.yaml; returns keys that need a restart. */
  async #rotateLiteral(record: TokenRecord, secret: string, call: CallContext): Promise<readonly string[]> {
    const { restart } = await this.#changeFile(record, 'tokens.rotate', call, [{ set: ['gateway', 'tokens', record.id, 'secret'], value: secret }]);
    return restart;
  }

  async #revokeConfigured(record: TokenRecord, call: CallContext): Promise<void> {
    await this.#changeFile(record, 'tokens.revoke', call, [{ unset: ['gateway', 'tokens', record.id] }]);
    // Where the configuration waits for a restart, the token does not.
    if (this.#registry.find(record.id)?.digest === record.digest) this.#registry.remove(record.id);
    await this.#bury(record);
  }

  async #changeFile({ id, digest }: TokenRecord, actionType: string, call: CallContext, edits: readonly Edit[]) {
    const { revoked } = this.#registry;
    const changing = this.#deps.settings.change(
      {
        section: 'gateway',
        key: 'tokens',
        target: id,
        actionType,
        classification: 'security',
        origin: 'rpc',
        summary: `${actionType} ${id}`,
        edits: (text) => {
          if (this.#registry.find(id)?.digest !== digest) throw rotatedMeanwhile(id);
          if (!hasToken(text, id))
            throw new AppError('precondition_failed', `Token ${id} is not in config.yaml but in GATEHOUSE_TOKEN: change the variable and restart`);
          // The token file may have the same secret, and must not take its place.
          revoked.add(digest);
          return edits;
        },
      },
      call,
    );
    return changing.catch((error: unknown) => {
      if (this.#registry.find(id)?.digest === digest) revoked.delete(digest);
      throw error;
    });
  }

  /** Records that a secret of a file grants no access any more, also where a copy or an earlier version of the file has it. */
  async #bury({ id, digest }: TokenRecord): Promise<void> {
    const { db, clock, log } = this.#deps;
    this.#registry.revoked.add(digest);
    const same = this.#registry.list().find((record) => record.digest === digest);
    if (same !== undefined) this.#registry.remove(same.id);
    await db
      .write(revokeSecret, { revoked: { digest, tokenId: id, atMs: clock.now() } })
      .catch((error: unknown) =>
        log.error({ err: error, tokenId: id }, 'Failed to record a revoked secret; an earlier version of its file would bring it back'),
      );
  }

  /** Empties the token file when it has the secret of a token that is gone. */
  async #retire(record: TokenRecord): Promise<void> {
    if (!this.#isInFile(record.digest)) return;
    if (!this.#registry.revoked.has(record.digest)) await this.#bury(record);
    try {
      this.#deps.tokenFile.write('');
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'Failed to empty the token file, whose secret grants no access any more');
    }
  }

  #isInFile(digest: string): boolean {
    const secret = this.#deps.tokenFile.read();
    return secret !== undefined && digestOf(this.#deps.pepper, secret) === digest;
  }

  /** Replaces the secret in the token file; the returned function takes that back. */
  #writeFile(secret: string): () => void {
    const { tokenFile, log } = this.#deps;
    const before = tokenFile.read() ?? '';
    try {
      tokenFile.write(secret);
    } catch (error) {
      throw new AppError('unavailable', `The token file cannot be written: ${error instanceof Error ? error.message : String(error)}`, {
        cause: error,
      });
    }
    return () => {
      try {
        tokenFile.write(before);
      } catch (error) {
        log.error({ err: error }, 'Failed to restore the token file');
      }
    };
  }

  async #save(row: TokenRow, former: TokenRecord | undefined, audit: AuditRow): Promise<void> {
    const { db } = this.#deps;
    if (former === undefined) {
      if (!(await db.write(insertToken, { row, audit }))) throw new AppError('conflict', `Token already exists: ${row.id}`, { param: 'id' });
    } else if (!(await db.write(replaceToken, { row, oldDigest: former.digest, audit }))) throw rotatedMeanwhile(row.id);
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
    return this.#stored(id);
  }

  #found(id: string): TokenRecord {
    const record = this.#registry.find(id);
    if (record === undefined) throw unknownToken(id);
    return record;
  }

  /** Returns a token of the database, which a new one of its id may replace. */
  #stored(id: string): TokenRecord {
    const record = this.#found(id);
    if (record.source === 'config')
      throw new AppError('precondition_failed', `Token ${id} is defined in config.yaml (gateway.tokens): replace it there, or revoke it first`);
    if (record.source === 'generated')
      throw new AppError(
        'precondition_failed',
        `Token ${id} was created at first start and is in the token file of the home folder: revoke it first`,
      );
    return record;
  }

  #audit(call: CallContext, action: string, target: string, more: Partial<Pick<AuditRow, 'outcome' | 'metadata'>> = {}): AuditRow {
    return auditRow(call, this.#deps.clock.now(), { actionType: action, classification: 'security', target, ...more });
  }
}

function unknownToken(id: string): AppError {
  return new AppError('not_found', `Token not found: ${id}`, { param: 'id' });
}

function rotatedMeanwhile(id: string): AppError {
  return new AppError('conflict', `Token ${id} was rotated or revoked at the same time`);
}

const Tokens = z.looseObject({ gateway: z.looseObject({ tokens: z.array(z.looseObject({ id: z.string() })) }) });

function hasToken(text: string, id: string): boolean {
  return Tokens.safeParse(documentValue(text)).data?.gateway.tokens.some((token) => token.id === id) === true;
}
