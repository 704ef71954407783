import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Log } from '../../../kernel/log.ts';
import { repeat } from '../../../kernel/timers.ts';
import type { TokensApi } from './api.ts';
import { TokenChanges, type TokenChangesDeps } from './changes.ts';
import { fixedRecords, type FixedTokens, grantOf, recordOf } from './records.ts';
import { TokenRegistry } from './registry.ts';
import { listTokens, recordUses } from './store.ts';

export interface TokensDeps extends TokenChangesDeps, FixedTokens {
  readonly log: Log;
}

export interface Tokens extends AsyncDisposable {
  readonly api: TokensApi;
  readonly methods: HandlersOf<`tokens.${'list' | 'create' | 'revoke' | 'rotate'}`>;
}

const usesMs = 60_000;

/** Access tokens of config.yaml, of the first start, and those created by `tokens.create`, all served from memory. Fails when a configured one is unusable. */
export async function createTokens(deps: TokensDeps): Promise<Tokens> {
  const { db, clock, log } = deps;
  const registry = new TokenRegistry(deps.pepper, clock);
  const changes = new TokenChanges(deps, registry);

  const { tokens: rows, uses } = await db.read(listTokens, {});
  for (const row of rows) registry.put(recordOf(row));
  for (const record of fixedRecords(deps)) {
    if (registry.find(record.id) !== undefined)
      log.warn({ tokenId: record.id }, 'A configured token has the id of a stored one, which no longer grants access');
    registry.put(record);
  }
  for (const use of uses) if (registry.find(use.tokenId) !== undefined) registry.setLastUsed(use.tokenId, use.atMs);

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
    methods,
    async [Symbol.asyncDispose]() {
      await saving[Symbol.asyncDispose]();
      registry.dispose();
      await saveUses().catch(warnUnsaved);
    },
  };
}
