import type { Live } from '../../../../kernel/config/live.ts';
import type { Core } from '../../../../kernel/core.ts';
import { ChannelActivity } from './activity/activity.ts';
import { type BillingDeps, createBilling } from './billing.ts';
import { createChannelReports } from './channels.ts';
import { createContextReports } from './contexts/contexts.ts';
import { createDeliveryReports } from './deliveries/deliveries.ts';
import { createDiagnostics } from './diagnostics.ts';
import { createResets } from './resets.ts';
import type { EventsApi } from '../../events/api.ts';

export interface ReportsDeps extends Core {
  readonly agents: BillingDeps['agents'];
  readonly usage: BillingDeps['usage'];
  readonly events: Pick<EventsApi, 'digest' | 'lastId'>;
  /** Stores the trace records of ended work; resolves to false when the database did not accept them. */
  readonly flushTraces: () => Promise<boolean>;
  /** Time zone of the hours of a day. */
  readonly zone: Live<string>;
  readonly retentionDays: Live<number>;
  /** Removes what is a secret or looks like one. */
  readonly redactText: (text: string) => string;
}

/** Reports of `obs.*` (json-rpc.md §4) on what other features store. */
export function createReports(deps: ReportsDeps) {
  const { db, clock, flushTraces: flush, events } = deps;
  const activity = new ChannelActivity(deps);
  const { since, methods: resets } = createResets({
    ...deps,
    flush,
    clearChannels: () => activity.clear(),
    newestEvent: () => events.lastId(),
  });

  async function sinceOf(agoMs: number | undefined): Promise<number> {
    const { askedMs, resetMs } = await since('token_usage', agoMs);
    return Math.max(askedMs, resetMs);
  }

  return {
    methods: {
      ...createBilling({ ...deps, since: sinceOf }),
      ...createChannelReports({ clock, activity }),
      ...createDeliveryReports({ db, since, flush }),
      ...createContextReports({ db, flush }),
      ...createDiagnostics({ events, since, redactText: deps.redactText }),
      ...resets,
    },
    [Symbol.asyncDispose]: () => activity[Symbol.asyncDispose](),
  };
}
