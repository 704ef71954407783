import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, recordAudit } from '../../../kernel/audit.ts';
import { ConfigError } from '../../../kernel/config/config-error.ts';
import type { Configuration } from '../../../kernel/config/configuration.ts';
import type { Live } from '../../../kernel/config/live.ts';
import type { Environment } from '../../../kernel/config/references.ts';
import { referencesIn } from '../../../kernel/config/references-in.ts';
import type { Core } from '../../../kernel/core.ts';
import type { AuditRow } from '../../../kernel/db/audit.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Log } from '../../../kernel/log.ts';
import { RateLimiter } from '../../../kernel/limiter.ts';
import type { SecretsApi } from './api.ts';
import { SecretChanges } from './changes.ts';
import type { SecretsConfig } from './config.ts';
import { layeredEnvironment } from './vault/environment.ts';
import { importSecrets, listSecrets, type SecretRow } from './store.ts';
import { tokenReference } from './token-reference.ts';
import { SecretUses } from './uses.ts';
import type { SecretVault } from './vault/vault.ts';

export interface SecretsDeps extends Core {
  readonly vault: SecretVault;
  readonly configuration: Pick<Configuration<unknown>, 'readText' | 'check' | 'reload' | 'inTurn' | 'live'>;
  readonly config: Live<SecretsConfig>;
  /** Environment of the daemon, which wins over the store. */
  readonly env: Environment;
  /**
   * Whether no other daemon has these secrets. Then one that only the copy has was lost with the database, and is inserted again; of a
   * shared database, another daemon may have removed it.
   */
  readonly isSole: boolean;
}

export interface Secrets extends AsyncDisposable {
  readonly api: SecretsApi;
  readonly methods: HandlersOf<`env.${'set' | 'list' | 'remove'}`>;
  /** Warnings for the person at the terminal. */
  readonly warnings: readonly string[];
  /**
   * Announces what the start inserted, and the secrets that the configuration in force uses, now and after each change. Called once
   * events are recorded.
   */
  announce(): void;
}

const lists = { limit: 30, windowMs: 60_000, slides: true } as const;

/**
 * The store of secrets: rows sealed with the install key, of which the vault is the view of this process. When the rows are not what the
 * vault had from its copy, the configuration is read again.
 */
export async function createSecrets(deps: SecretsDeps): Promise<Secrets> {
  const { db, clock, log, vault, configuration, config, env } = deps;
  const isShadowed = (name: string) => (env[name] ?? '') !== '';
  const listeners = new Set<() => Promise<void> | void>();
  const changes = new SecretChanges({ ...deps, isShadowed, isReadOnly: () => config.current.readOnly, changed });
  const uses = new SecretUses(deps);
  const limiter = new RateLimiter({ ...lists, clock });
  const found = new Set<string>();
  const lifetime = new AsyncDisposableStack();
  lifetime.use(uses);
  lifetime.use(changes);

  const announceImported = await adoptRows(deps, changes);

  async function changed(): Promise<void> {
    const call = async (run: () => Promise<void> | void) => run();
    const onError = (error: unknown) => log.error({ err: error }, 'Failed to apply a changed secret');
    await Promise.all([...listeners].map((run) => call(run).catch(onError)));
  }

  function noteUses(): void {
    // Most installations have none, and need not read their configuration for it.
    if (vault.isEmpty()) return;
    for (const name of referencesIn(configuration.readText()).keys())
      if (!isShadowed(name)) uses.note(name, vault.get(name) !== undefined ? 'success' : vault.isUnreadable(name) ? 'denied' : 'not_found');
  }

  /** The first read of each counts: the daemon keeps what it reads. */
  function useOnce(name: string): string | undefined {
    const value = vault.get(name);
    if (value !== undefined && !found.has(name)) {
      found.add(name);
      uses.note(name, 'success');
    }
    return value;
  }

  async function list(filter: string | undefined, limit: number) {
    const pattern = filter === undefined ? undefined : globPattern(filter);
    const users = referencesIn(configuration.readText());
    const all = (await db.read(listSecrets, {})).filter(({ name }) => pattern?.test(name) ?? true);
    const secrets = all.slice(0, limit).map((row) => {
      const pending = uses.pendingOf(row.name);
      return {
        ...listed(row),
        usageCount: row.usageCount + (pending?.count ?? 0),
        ...((pending !== undefined || row.lastUsedAtMs !== null) && { lastUsedAt: pending?.atMs ?? row.lastUsedAtMs ?? 0 }),
        usedBy: [...(users.get(row.name) ?? [])],
        ...(isShadowed(row.name) && { shadowed: true as const }),
        ...(vault.isUnreadable(row.name) && { unreadable: true as const }),
      };
    });
    return { secrets, total: all.length, truncated: all.length > limit };
  }

  return {
    api: {
      environment: layeredEnvironment(env, useOnce),
      onChange(run) {
        listeners.add(run);
        return { [Symbol.dispose]: () => void listeners.delete(run) };
      },
      replace: (name, value, call, audited) => changes.replace(name, value, call, audited),
      async rotateToken(tokenId, value, call) {
        const name = tokenReference(configuration.readText(), tokenId);
        if (name === undefined) return undefined;
        return changes.replace(name, value, call, { actionType: 'tokens.rotate', classification: 'security', target: tokenId });
      },
    },
    methods: {
      'env.set': (params, call) => changes.set(params, call),
      'env.remove': (params, call) => changes.remove(params, call),
      async 'env.list'({ filter, limit }, call) {
        const { allowed, resetMs } = limiter.take('');
        if (!allowed) throw new AppError('rate_limited', `At most ${lists.limit} lists of secrets per minute`, { retryAfterMs: Math.ceil(resetMs) });
        const result = await list(filter, limit);
        await recordAudit(deps, call, {
          actionType: 'env.list',
          classification: 'read',
          metadata: { listed: result.secrets.length, total: result.total },
        });
        return result;
      },
    },
    warnings: [vault.fault() ?? []].flat(),
    announce() {
      announceImported();
      noteUses();
      lifetime.use(configuration.live.onChange(noteUses));
    },
    [Symbol.asyncDispose]: () => lifetime.disposeAsync(),
  };
}

/** Makes the vault what the rows are, after those that were lost are inserted again; the returned function announces these. */
async function adoptRows({ db, bus, clock, log, vault, configuration, isSole }: SecretsDeps, changes: SecretChanges): Promise<() => void> {
  const rows = await db.read(listSecrets, {});
  const lost = isSole ? vault.readable().filter(({ name }) => !rows.some((row) => row.name === name)) : [];
  const atMs = clock.now();
  const audits = lost.map(({ name }) => importAudit(name, atMs));
  if (lost.length > 0) {
    const inserted = lost.map((one) => ({ ...one, provider: null, description: null, createdAtMs: atMs, updatedAtMs: atMs, expiresAtMs: null }));
    await db.write(importSecrets, { rows: inserted, audits });
    for (const { name } of lost) log.warn({ secretName: name }, 'The database does not have a secret of the sealed copy: inserted it');
  }
  const changed = vault.adopt([...rows, ...lost]);
  changes.saveCopy();
  if (changed.length > 0) await readAgain(configuration, log, changed);
  return () => {
    for (const audit of audits) announceAudit(bus, audit);
    for (const { name } of lost) bus.emit('secret:modified', { secretName: name, action: 'imported', timestamp: atMs });
  };
}

async function readAgain(configuration: SecretsDeps['configuration'], log: Log, changed: readonly string[]): Promise<void> {
  log.info({ secretNames: changed.toSorted() }, 'The database has other secrets than the sealed copy: reading the configuration again');
  try {
    await configuration.reload('secrets of the database');
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    log.warn({ err: error }, 'The configuration is not valid with the secrets of the database; what is in force stays until the next start');
  }
}

function importAudit(name: string, atMs: number): AuditRow {
  return {
    id: newId('au'),
    atMs,
    principalId: 'system',
    action: 'env.import',
    classification: 'mutate',
    outcome: 'success',
    target: name,
    traceId: '',
  };
}

function listed({ name, provider, description, createdAtMs, updatedAtMs, expiresAtMs }: SecretRow) {
  return {
    name,
    source: 'secretstore' as const,
    ...(provider !== null && { provider }),
    ...(description !== null && { description }),
    createdAt: createdAtMs,
    updatedAt: updatedAtMs,
    ...(expiresAtMs !== null && { expiresAt: expiresAtMs }),
  };
}

/** `*` stands for any characters. Linear: the parts between are searched for one after another. */
function globPattern(filter: string): { test(name: string): boolean } {
  const parts = filter.toUpperCase().split('*');
  const [first = '', last = ''] = [parts[0], parts.at(-1)];
  if (parts.length === 1) return { test: (name) => name === first };
  return {
    test(name) {
      if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last)) return false;
      let at = first.length;
      for (const part of parts.slice(1, -1)) {
        const found = name.indexOf(part, at);
        if (found === -1) return false;
        at = found + part.length;
      }
      return at <= name.length - last.length;
    },
  };
}
