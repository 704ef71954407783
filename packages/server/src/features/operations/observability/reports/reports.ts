import type { Live } from '../../../../kernel/config/live.ts';
import type { Core } from '../../../../kernel/core.ts';
import { type BillingDeps, createBilling } from './billing.ts';
import { readResets } from './store.ts';

export interface ReportsDeps extends Core {
  readonly agents: BillingDeps['agents'];
  readonly usage: BillingDeps['usage'];
  /** Time zone of the hours of a day. */
  readonly zone: Live<string>;
}

/** Reports of `obs.*` (json-rpc.md §4) on what other features store. */
export function createReports(deps: ReportsDeps) {
  const { db, clock } = deps;

  async function sinceOf(name: 'token_usage', agoMs: number | undefined): Promise<number> {
    const nowMs = clock.now();
    const reset = (await db.read(readResets, {})).find((row) => row.name === name)?.atMs ?? 0;
    // A reset in the future is older than a backward step of the clock.
    return Math.max(agoMs === undefined ? 0 : nowMs - agoMs, Math.min(reset, nowMs));
  }

  return { methods: createBilling({ ...deps, since: (agoMs) => sinceOf('token_usage', agoMs) }) };
}
