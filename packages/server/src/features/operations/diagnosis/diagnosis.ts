import type { TraceRecord } from '@gatehouse/contract';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { ChannelStanding } from '../../channels/instances/api.ts';
import type { MessagesApi } from '../../channels/messages/api.ts';
import { createExplain } from './explain/methods.ts';
import { createSystemHealth } from './health/methods.ts';
import { createTraceSearch } from './search/search.ts';

export interface DiagnosisDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly traces: {
    /** Stores what has ended and is not stored yet. */
    readonly flush: () => Promise<unknown>;
    /** Returns the turns that run now. */
    readonly running: () => readonly TraceRecord[];
  };
  /** Finds the conversations of a chat, and the turns of a message of a platform. */
  readonly tracedBy: MessagesApi['tracedBy'];
  /** Returns how the enabled channels are. */
  readonly channels: () => readonly ChannelStanding[];
}

/** Explains sessions and the state of the whole system from stored records, in the search thread of the storage. */
export function createDiagnosis(deps: DiagnosisDeps): { readonly methods: HandlersOf<'obs.explain' | 'obs.system.health' | 'obs.trace.search'> } {
  return { methods: { ...createTraceSearch(deps), ...createExplain(deps), ...createSystemHealth(deps) } };
}
