import type { Params, ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { ConfigError } from '../../../kernel/config/config-error.ts';
import type { Configuration } from '../../../kernel/config/configuration.ts';
import { referencesIn } from '../../../kernel/config/references-in.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { RateLimiter } from '../../../kernel/limiter.ts';
import type { Log } from '../../../kernel/log.ts';
import { removeSecret, setSecret, type WriteLimit } from './store.ts';
import type { AuditedSecret } from './api.ts';
import type { SecretVault } from './vault/vault.ts';

export interface SecretChangesDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly vault: SecretVault;
  readonly configuration: Pick<Configuration<unknown>, 'readText' | 'check' | 'reload' | 'inTurn'>;
  /** Whether the environment has a variable of this name, which wins. */
  readonly isShadowed: (name: string) => boolean;
  readonly isReadOnly: () => boolean;
  /** Called when a change is stored and the configuration is applied. Never rejects. */
  readonly changed: () => Promise<void>;
}

const retryMs = 60_000;
const limit: WriteLimit = { limit: 5, windowMs: 60_000, maxSecrets: 1_000 };

/** Changes of the store, one after the other with those of the configuration: each is a row with its audit row, then the copy, then the configuration. */
export class SecretChanges implements Disposable {
  readonly #deps: SecretChangesDeps;
  /** The rows know wall time alone, which may step. */
  readonly #limiter: RateLimiter;
  /** Set while a copy that could not be written waits to be tried again. */
  #cancelRetry: (() => void) | undefined;

  constructor(deps: SecretChangesDeps) {
    this.#deps = deps;
    this.#limiter = new RateLimiter({ limit: limit.limit, windowMs: limit.windowMs, slides: true, clock: deps.clock });
  }

  set(params: Params<'env.set'>, call: CallContext): Promise<ResultInput<'env.set'>> {
    const { key } = params;
    return this.#deps.configuration.inTurn(async () => {
      this.#refuseReadOnly();
      this.#refuseNarrow(key, call);
      const stored = { set: true as const, key, storage: 'encrypted' as const, restarting: false as const };
      await this.#store(params, call, { actionType: 'env.set', classification: 'destructive', target: key });
      if (this.#deps.isShadowed(key)) return { ...stored, shadowed: true as const, restart: [] };
      return { ...stored, ...(await this.#apply(`env.set ${key}`)) };
    });
  }

  /**
   * Replaces a secret of the configuration for a caller that may change what uses it; returns keys that need a restart.
   * @throws AppError when the environment has the name, the store is read-only, or the configuration is not valid
   */
  replace(key: string, value: string, call: CallContext, audited: AuditedSecret): Promise<readonly string[]> {
    return this.#deps.configuration.inTurn(async () => {
      this.#refuseReadOnly();
      if (this.#deps.isShadowed(key))
        throw new AppError('precondition_failed', `${key} is a variable of the environment: change it there and restart`);
      const fault = this.#faultOfConfiguration();
      if (fault !== undefined) throw new AppError('precondition_failed', `The configuration is not valid, so nothing was changed: ${fault}`);
      await this.#store({ key, value }, call, audited);
      return (await this.#apply(`${audited.actionType} ${audited.target}`)).restart;
    });
  }

  async #store({ key, value, provider, description, expiresAt }: Params<'env.set'>, call: CallContext, audited: AuditedSecret): Promise<void> {
    const { db, bus, clock, vault } = this.#deps;
    this.#refuseInvalid(key, value);
    this.#count();
    const sealed = vault.seal(key, value);
    const atMs = clock.now();
    const row = {
      ...sealed,
      provider: provider ?? null,
      description: description ?? null,
      createdAtMs: atMs,
      updatedAtMs: atMs,
      expiresAtMs: expiresAt ?? null,
    };
    const audit = auditRow(call, atMs, audited);
    const action = await db.write(setSecret, { row, limit, audit });
    if (typeof action === 'object') throw tooMany(action.retryAfterMs);
    if (action === 'full') throw new AppError('conflict', `At most ${limit.maxSecrets} secrets are stored: remove one first`);
    vault.put(sealed);
    this.saveCopy();
    announceAudit(bus, audit);
    bus.emit('secret:modified', { secretName: key, action, timestamp: atMs });
  }

  remove({ key }: Params<'env.remove'>, call: CallContext): Promise<ResultInput<'env.remove'>> {
    return this.#deps.configuration.inTurn(async () => {
      const { db, bus, clock, vault } = this.#deps;
      this.#refuseReadOnly();
      const absent = () => new AppError('not_found', `There is no secret ${key}`, { param: 'key' });
      if (!vault.has(key)) throw absent();
      this.#refuseUsed(key);
      this.#count();
      const atMs = clock.now();
      const audit = auditRow(call, atMs, { actionType: 'env.remove', classification: 'destructive', target: key });
      // First the copy: a secret that it has and the rows do not was lost with the database, and is inserted again.
      const restore = vault.drop(key);
      try {
        vault.save();
        const outcome = await db.write(removeSecret, { name: key, limit, audit });
        if (typeof outcome === 'object') throw tooMany(outcome.retryAfterMs);
        if (outcome === 'absent') throw absent();
      } catch (error) {
        restore();
        this.saveCopy();
        throw error;
      }
      announceAudit(bus, audit);
      bus.emit('secret:modified', { secretName: key, action: 'deleted', timestamp: atMs });
      await this.#deps.changed();
      return { removed: true as const, key };
    });
  }

  /** A copy that cannot be written is tried again: the rows are the truth, and the next start reads them where the copy is not enough. */
  saveCopy(): void {
    const { vault, clock, log } = this.#deps;
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    try {
      vault.save();
    } catch (error) {
      log.warn({ err: error }, 'Failed to write the sealed copy of the secrets; trying again');
      this.#cancelRetry = clock.after(retryMs, () => this.saveCopy());
    }
  }

  [Symbol.dispose](): void {
    this.#cancelRetry?.();
  }

  #refuseReadOnly(): void {
    if (this.#deps.isReadOnly()) throw new AppError('precondition_failed', 'The secret store is read-only (secrets.readOnly in config.yaml)');
  }

  /** Refuses a caller that would choose the secret of a token that may do more than the caller itself, or where data is stored or keys are sent. */
  #refuseNarrow(key: string, { identity }: CallContext): void {
    if (identity.scopes.includes('*')) return;
    // Also one that the environment hides for now: it counts once the variable is gone.
    const users = this.#referencesTo(key).filter((user) => /^(?:gateway|storage)\b|^providers\..*\.baseUrl$/.test(user));
    if (users.length > 0)
      throw new AppError('denied', `The secret ${key} is used by ${users.join(', ')}: a token with scope * is needed to change it`);
  }

  /** Returns the keys that get their value from the store. */
  #usersOf(key: string): readonly string[] {
    return this.#deps.isShadowed(key) ? [] : this.#referencesTo(key);
  }

  #referencesTo(key: string): readonly string[] {
    return referencesIn(this.#deps.configuration.readText()).get(key) ?? [];
  }

  /** Refuses a value with which the configuration, which is valid now, would not be. */
  #refuseInvalid(key: string, value: string): void {
    const { vault, isShadowed } = this.#deps;
    if (isShadowed(key)) return;
    const fault = vault.withCandidate(key, value, () => this.#faultOfConfiguration());
    if (fault !== undefined && this.#faultOfConfiguration() === undefined)
      throw new AppError('precondition_failed', `With this value the configuration is not valid: ${fault}`, { param: 'value' });
  }

  #refuseUsed(key: string): void {
    const users = this.#usersOf(key);
    if (users.length > 0)
      throw new AppError('precondition_failed', `The secret ${key} is used by ${users.join(', ')}: change these keys of config.yaml first`, {
        param: 'key',
      });
  }

  #faultOfConfiguration(): string | undefined {
    const { configuration } = this.#deps;
    try {
      configuration.check(configuration.readText());
      return undefined;
    } catch (error) {
      if (error instanceof ConfigError) return error.message;
      throw error;
    }
  }

  #count(): void {
    const { allowed, resetMs } = this.#limiter.take('');
    if (!allowed) throw tooMany(resetMs);
  }

  async #apply(cause: string): Promise<{ readonly restart: string[]; readonly notApplied?: string }> {
    try {
      return { restart: [...(await this.#deps.configuration.reload(cause)).restart] };
    } catch (error) {
      if (error instanceof ConfigError) return { restart: [], notApplied: error.message };
      throw error;
    } finally {
      await this.#deps.changed();
    }
  }
}

function tooMany(retryAfterMs: number): AppError {
  const ms = Math.max(1, Math.ceil(retryAfterMs));
  return new AppError('rate_limited', `At most ${limit.limit} secrets are set or removed per minute: try again in ${Math.ceil(ms / 1000)} seconds`, {
    retryAfterMs: ms,
  });
}
