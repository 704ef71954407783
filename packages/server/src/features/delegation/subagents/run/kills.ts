import type { Clock } from '../../../../kernel/clock.ts';
import type { AuditRow } from '../../../../kernel/db/audit.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { RootStop } from '../../autonomy/api.ts';
import type { StoppedRun } from '../api.ts';
import type { EndedRun, RunRow } from './row.ts';
import type { Runner } from './runner.ts';

/** Input of `killRuns`. */
export interface RunKillInput {
  readonly which: { readonly runId: string } | { readonly rootRunId: string; readonly only?: 'queued' } | { readonly runIds: readonly string[] };
  readonly endReason: 'killed' | 'ghost_sweep';
  readonly errorKind: string;
  readonly notify: boolean;
  readonly audit?: AuditRow | undefined;
  readonly atMs: number;
}

interface KillsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly runner: Pick<Runner, 'live' | 'ended'>;
  readonly kill: Operation<RunKillInput, EndedRun[]>;
}

type Stop = (runs: readonly StoppedRun[]) => Promise<void>;

/** Ends runs together with everything that they delegated: commits their ends first, then stops what is running. */
export class Kills {
  readonly #deps: KillsDeps;
  readonly #stops: Stop[] = [];

  constructor(deps: KillsDeps) {
    this.#deps = deps;
  }

  /** Registers a function that stops other work of stopped runs. */
  onStopped(stop: Stop): void {
    this.#stops.push(stop);
  }

  /** Kills one run; false when it had already ended. */
  async killOne(row: RunRow, notify: boolean, audit?: AuditRow): Promise<boolean> {
    const ended = await this.#commit({ which: { runId: row.id }, endReason: 'killed', errorKind: 'killed', notify, audit });
    await this.stopped(ended);
    return ended.some((one) => one.row.id === row.id);
  }

  /** Ends runs that outlived their watchdog. */
  async endGhosts(runIds: readonly string[]): Promise<void> {
    await this.stopped(await this.#commit({ which: { runIds }, endReason: 'ghost_sweep', errorKind: 'ghost_sweep', notify: true }));
  }

  /** Ends the runs of a stopped root, for a revocation only the queued ones; returns how many. */
  async stopRoot(rootRunId: string, how: RootStop): Promise<number> {
    const which = how === 'kill' ? { rootRunId } : { rootRunId, only: 'queued' as const };
    const ended = await this.#commit({ which, endReason: 'killed', errorKind: how === 'kill' ? 'killed' : 'revoked', notify: true });
    // The other work of the root is stopped separately.
    this.#deps.runner.ended(ended);
    return ended.length;
  }

  /** Call after the commit that ended these runs. */
  async stopped(ended: readonly EndedRun[]): Promise<void> {
    const { runner, log } = this.#deps;
    for (const { row } of ended) runner.live(row.id)?.stop('killed');
    const runs = ended.map(({ row: { id: runId, rootRunId } }) => ({ runId, rootRunId }));
    // Before anyone is notified: a graph would take the end of its runs for a failure.
    for (const stop of runs.length === 0 ? [] : this.#stops)
      await stop(runs).catch((error: unknown) => log.error({ err: error }, 'Failed to stop work of a stopped sub-agent'));
    runner.ended(ended);
  }

  #commit(input: Omit<RunKillInput, 'atMs'>): Promise<EndedRun[]> {
    const { db, clock, kill } = this.#deps;
    return db.write(kill, { ...input, atMs: clock.now() });
  }
}
