import type { WakeLane, WakeReason } from '@gatehouse/contract';

export type { WakeLane, WakeReason };

export interface WakeRequest {
  readonly agentId: string;
  readonly reason: WakeReason;
  /** `normal` when absent; one wake may be pending per agent and lane. */
  readonly lane?: WakeLane;
  /** `next-heartbeat`: joins the next beat of the interval; `now` when absent. */
  readonly mode?: 'now' | 'next-heartbeat';
  /** Ignores the 30 s between two starts; the flood cap still applies. */
  readonly bypassSpacing?: boolean;
}

/** An accepted request, pending under `correlationId`, alone or merged with an earlier one. */
export interface Admitted {
  readonly status: 'accepted' | 'coalesced';
  readonly accepted: boolean;
  readonly coalesced: boolean;
  /** Present only when the request was accepted. */
  readonly disposition?: 'new_occurrence' | 'occurrence_upgraded';
  /** Shared by the three wake events of the occurrence (http-gateway.md §6). */
  readonly correlationId: string;
  readonly lane: WakeLane;
  readonly retainedReason: WakeReason;
}

export interface Refused {
  readonly status: 'refused';
  readonly accepted: false;
  readonly coalesced: false;
  readonly refusal: 'unknown_agent' | 'disabled' | 'suspended' | 'stopped' | 'closing' | 'full';
  /** One sentence for users. */
  readonly message: string;
}

export type Admission = Admitted | Refused;

/** An event for an agent's next beat. `enqueueSystemEvent` in `store.ts` writes it in the transaction of its cause. */
export interface SystemEvent {
  readonly agentId: string;
  /** Truncated to 4,000 characters. Fenced before a model sees it. */
  readonly text: string;
  /** The source, for the model and the log: `cron`, `webhook`, … */
  readonly source: string;
  /** Set for text of the owner or of a clean turn, which does not taint the beat. */
  readonly clean?: boolean;
  /** Key of the operation that queues the event; each key is queued once. */
  readonly opKey: string;
  /** Set for an event to deliver immediately, through a wake for this reason; repeated after a restart. */
  readonly urgent?: WakeReason;
  readonly atMs: number;
}

export interface HeartbeatApi {
  /** Requests a beat; never throws or waits. A beat with nothing to do calls no model. */
  wake(request: WakeRequest): Admission;
  /** Call when an event was queued without a wake: the next regular beat delivers it, or a retry if the provider stopped those. */
  noticeEvent(agentId: string): void;
}

/** Kind of the durable work that runs beats. */
export const beatKind = 'heartbeat';
