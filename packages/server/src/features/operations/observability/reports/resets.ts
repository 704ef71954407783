import { resetTables, type ResetTarget } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Core } from '../../../../kernel/core.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import { refuseAgents } from './access.ts';
import { dropRecords, newestRecord } from './deliveries/delivery-store.ts';
import { readResets, recordReset } from './store.ts';

/** Few enough that no other write waits for long. */
const dropRows = 200;
const retryAfterMs = 5_000;

const refused = (what: string, cause?: unknown) =>
  new AppError('unavailable', `The file of telemetry accepts no writes, such as on a full disk: ${what}. Free space, then reset again`, {
    retryAfterMs,
    cause,
  });

/** Returns where a view of data begins that is asked for since a duration ago. */
export type ViewStart = (
  table: ResetTarget,
  agoMs: number | undefined,
) => Promise<{
  /** The requested begin. */
  readonly askedMs: number;
  /** The last reset. */
  readonly resetMs: number;
  /** Number of the newest trace record, or of the newest event for `diagnostics`, at the last reset. */
  readonly upTo: number;
}>;

export interface ResetsDeps extends Core {
  /** Stores the records of ended work; resolves to false when the database did not accept them. */
  readonly flush: () => Promise<boolean>;
  readonly clearChannels: () => Promise<number>;
  readonly newestEvent: () => number;
}

/** Handlers of `obs.reset` and `obs.reset.table`, and the begin of each view. */
export function createResets(deps: ResetsDeps): {
  readonly since: ViewStart;
  readonly methods: HandlersOf<'obs.reset' | 'obs.reset.table'>;
} {
  const { db, bus, clock } = deps;

  async function dropUpTo(upTo: number, kind: 'delivery' | null): Promise<number> {
    let total = 0;
    for (;;) {
      const dropped = await db.telemetry(dropRecords, { kind, upTo, limit: dropRows });
      total += dropped;
      if (dropped < dropRows) return total;
    }
  }

  /** Deletes what belongs to observability alone; the other views begin at the mark. */
  async function drop(table: ResetTarget, upTo: number): Promise<number> {
    if (table === 'channels') return deps.clearChannels();
    if (table === 'traces') return dropUpTo(upTo, null);
    return table === 'delivery' ? dropUpTo(upTo, 'delivery') : 0;
  }

  async function reset(tables: readonly ResetTarget[], call: CallContext): Promise<Record<ResetTarget, number>> {
    refuseAgents(call);
    if (call.identity.agents !== undefined) throw new AppError('denied', 'A token that is limited to some agents cannot reset data of all');
    // What is stored later would appear after the reset, as if it were new.
    if (!(await deps.flush())) throw refused('nothing was reset');
    const atMs = clock.now();
    const record = await db.read(newestRecord, {});
    const event = deps.newestEvent();
    const target = tables.length === 1 ? tables[0] : 'all';
    const audit = auditRow(call, atMs, { actionType: 'obs.reset', classification: 'destructive', ...(target !== undefined && { target }) });
    const marks = tables.map((name) => ({ name, atMs, upTo: name === 'diagnostics' ? event : record }));
    await db.write(recordReset, { marks, audit });
    announceAudit(bus, audit);
    const deleted = { token_usage: 0, delivery: 0, diagnostics: 0, channels: 0, traces: 0 };
    try {
      for (const table of tables) deleted[table] = await drop(table, record);
    } catch (error) {
      throw refused('views begin with this reset, but older rows remain', error);
    }
    return deleted;
  }

  function announce(call: CallContext, table: ResetTarget | 'all', rowsDeleted: number | Record<string, number>): void {
    bus.emit('observability:reset', { admin: call.identity.principalId, table, rowsDeleted, timestamp: clock.now() });
  }

  return {
    async since(table, agoMs) {
      const nowMs = clock.now();
      const mark = (await db.read(readResets, {})).find(({ name }) => name === table);
      // A reset in the future is one from before the clock went back.
      return { askedMs: agoMs === undefined ? 0 : nowMs - agoMs, resetMs: Math.min(mark?.atMs ?? 0, nowMs), upTo: mark?.upTo ?? 0 };
    },
    methods: {
      'obs.reset': async (_params, call) => {
        const { token_usage: tokenUsage, ...others } = await reset(resetTables, call);
        const rowsDeleted = { tokenUsage, ...others };
        announce(call, 'all', rowsDeleted);
        return { reset: true, rowsDeleted };
      },
      'obs.reset.table': async ({ table }, call) => {
        const rowsDeleted = (await reset([table], call))[table];
        announce(call, table, rowsDeleted);
        return { reset: true, table, rowsDeleted };
      },
    },
  };
}
