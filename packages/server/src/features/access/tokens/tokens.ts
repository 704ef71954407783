import type { Live } from '../../../kernel/config/live.ts';
import { isDeepStrictEqual } from 'node:util';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Log } from '../../../kernel/log.ts';
import { repeat } from '../../../kernel/timers.ts';
import type { TokensApi } from './api.ts';
import { TokenChanges, type TokenChangesDeps } from './changes.ts';
import type { PersonsConfig } from './config.ts';
import { Owners } from './owners.ts';
import { fixedRecords, type FixedTokens, grantOf, type KnownTokens, recordOf } from './records.ts';
import { type TokenRecord, TokenRegistry } from './registry.ts';
import { listTokens, recordUses } from './store.ts';

export interface TokensDeps extends Omit<TokenChangesDeps, 'owners'>, Omit<FixedTokens, 'configTokens'> {
  readonly configTokens: Live<FixedTokens['configTokens']>;
  readonly persons: Live<PersonsConfig>;
  readonly log: Log;
}

export interface Tokens extends AsyncDisposable {
  readonly api: TokensApi;
  readonly owners: Owners;
  readonly methods: HandlersOf<`tokens.${'list' | 'create' | 'revoke' | 'rotate'}`>;
}

const usesMs = 60_000;

/** Access tokens of config.yaml, of the first start, and those created by `tokens.create`, all served from memory. Fails when a configured one is unusable. */
export async function createTokens(deps: TokensDeps): Promise<Tokens> {
  const { db, clock, log } = deps;
  const registry = new TokenRegistry(deps.pepper, clock);
  const owners = new Owners(registry, deps.persons);
  const changes = new TokenChanges({ ...deps, owners }, registry);

  const { tokens: rows, uses, revoked, persons } = await db.read(listTokens, {});
  for (const digest of revoked) registry.revoked.add(digest);
  registry.persons.load(persons);
  const used = new Set(uses.map(({ tokenId }) => tokenId));
  await changes.meetPersons(rows.map(recordOf), (id) => used.has(id));
  for (const row of rows) registry.put(recordOf(row));
  const fix = (record: TokenRecord): void => {
    if (registry.find(record.id)?.source === 'created')
      log.warn({ tokenId: record.id }, 'A configured token has the id of a stored one, which no longer grants access');
    registry.put(record);
  };
  const recordsOf = (configTokens: FixedTokens['configTokens'], stored: KnownTokens['stored']): TokenRecord[] => {
    const records = fixedRecords({ ...deps, configTokens }, { revoked: registry.revoked, stored });
    for (const { id } of configTokens)
      if (!records.some((record) => record.id === id))
        log.warn({ tokenId: id }, 'A token of config.yaml has a secret that was revoked: it grants no access; give it another secret');
    return records;
  };
  const fixed = recordsOf(deps.configTokens.current, rows);
  await changes.meetPersons(fixed, (id) => used.has(id));
  fixed.forEach(fix);
  for (const use of uses) if (registry.find(use.tokenId) !== undefined) registry.setLastUsed(use.tokenId, use.atMs);

  /** Ends removed and changed tokens, with their sockets; a stored token grants access again when the configured one of its id is gone. */
  async function follow(configTokens: FixedTokens['configTokens']): Promise<void> {
    const { tokens: stored } = await db.read(listTokens, {});
    const next = recordsOf(configTokens, stored);
    await changes.meetPersons(next);
    const gone = registry.list().filter(({ id, source }) => source !== 'created' && !next.some((record) => record.id === id));
    for (const { id } of gone) registry.remove(id);
    for (const record of next) if (!isDeepStrictEqual(record, registry.find(record.id))) fix(record);
    if (gone.length === 0) return;
    for (const row of stored) if (registry.find(row.id) === undefined) registry.put(recordOf(row));
  }
  await owners.refresh();
  const following = [
    deps.configTokens.onChange(async (configTokens) => {
      await follow(configTokens);
      await owners.refresh();
    }),
    deps.persons.onChange(() => owners.refresh()),
  ];

  async function saveUses(): Promise<void> {
    const taken = registry.takeUses();
    if (taken.length > 0) await db.write(recordUses, { uses: taken });
  }

  const warnUnsaved = (error: unknown) => log.warn({ err: error }, 'Failed to store the last use of tokens');
  const saving = repeat({ clock, everyMs: usesMs, run: saveUses, onError: warnUnsaved });

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
    'tokens.create': (params, call) => changes.create(params, call),
    'tokens.revoke': ({ id }, call) => changes.revoke(id, call),
    'tokens.rotate': ({ id }, call) => changes.rotate(id, call),
  };

  return {
    api: registry,
    owners,
    methods,
    async [Symbol.asyncDispose]() {
      for (const one of following) one[Symbol.dispose]();
      await saving[Symbol.asyncDispose]();
      registry.dispose();
      await saveUses().catch(warnUnsaved);
    },
  };
}
