import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { newId, newTraceId } from '../../../../kernel/ids.ts';
import type { Log } from '../../../../kernel/log.ts';
import { listRoots } from '../roots/list-store.ts';
import type { AutonomyMethods } from '../methods.ts';

/** Whose work is stopped: all that a principal has, or what one of several tokens of a person has started. */
export type StoppedOwner = { readonly principalId: string } | { readonly tokenId: string };

export interface TokenStopDeps {
  readonly db: Db;
  /** Returns the root runs that have work of a token which has not ended. */
  readonly rootsOfToken: (tokenId: string) => Promise<readonly string[]>;
  readonly log: Log;
  readonly methods: Pick<AutonomyMethods, 'run.kill'>;
}

const identity = { principalId: 'system:autonomy', tokenId: 'system:autonomy', scopes: ['admin'] } as const satisfies CallContext['identity'];
const atOnce = 200;

/**
 * Kills what a principal has started when its token is no longer valid, because runs act with the authority that they began with.
 * What a process leaves running when it dies in between is refused at the next start, because its token is gone.
 */
export function createTokenStop({
  db,
  log,
  methods,
  rootsOfToken,
}: TokenStopDeps): (owner: StoppedOwner, rootRunIds: readonly string[]) => Promise<void> {
  const kill = async (rootRunId: string): Promise<number> => {
    const call: CallContext = {
      identity,
      traceId: newTraceId(),
      requestId: newId('rq'),
      signal: new AbortController().signal,
      transport: 'process',
    };
    try {
      return (await methods['run.kill']({ rootRunId }, call)).killed;
    } catch (error) {
      // It has ended in the meantime.
      if (!(error instanceof AppError)) throw error;
      return 0;
    }
  };
  return async (owner, rootRunIds) => {
    try {
      for (const rootRunId of rootRunIds) await kill(rootRunId);
      if ('tokenId' in owner) {
        for (const rootRunId of await rootsOfToken(owner.tokenId)) await kill(rootRunId);
        return;
      }
      const { principalId } = owner;
      for (;;) {
        const { rows } = await db.read(listRoots, { principalId, agentIds: null, state: 'active', resuming: [], offset: 0, limit: atOnce });
        let killed = 0;
        for (const { rootRunId } of rows) killed += await kill(rootRunId);
        // A page on which nothing could be stopped would repeat forever.
        if (rows.length < atOnce || killed === 0) return;
      }
    } catch (error) {
      log.error({ err: error, ...owner }, 'Failed to stop the work of a revoked token');
    }
  };
}
