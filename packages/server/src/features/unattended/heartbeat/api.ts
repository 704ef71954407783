import type { WakeLane, WakeReason } from '@gatehouse/contract';

export type { WakeLane, WakeReason };

export interface WakeRequest {
  readonly agentId: string;
  readonly reason: WakeReason;
  /** `normal` when absent; one wake may wait per agent and lane. */
  readonly lane?: WakeLane;
  /** `next-heartbeat`: together with the next beat that is due by the interval; `now` when absent. */
  readonly mode?: 'now' | 'next-heartbeat';
  /** Does not keep the 30 s between two starts; the flood cap holds all the same. */
  readonly bypassSpacing?: boolean;
}

/** What became of a request: it waits under `correlationId`, alone or together with an earlier one. */
export interface Admitted {
  readonly status: 'accepted' | 'coalesced';
  readonly accepted: boolean;
  readonly coalesced: boolean;
  /** Only when it was accepted. */
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
  /** One sentence for people. */
  readonly message: string;
}

export type Admission = Admitted | Refused;

/** What the next beat of an agent is told. It is written by `enqueueSystemEvent` of `store.ts`, in the transaction of whatever happened. */
export interface SystemEvent {
  readonly agentId: string;
  /** At most 4,000 characters are kept. It is fenced before a model sees it. */
  readonly text: string;
  /** Where it comes from, for the model and the log: `cron`, `webhook`, … */
  readonly source: string;
  /** The owner's text or a clean turn's: it does not taint the beat. */
  readonly clean?: boolean;
  /** Of the operation that queues it: the same key is queued once. */
  readonly opKey: string;
  /** When it is to be told at once, by a wake for this reason: a daemon that ends before that asks for the beat again. */
  readonly urgent?: WakeReason;
  readonly atMs: number;
}

export interface HeartbeatApi {
  /** Asks for a beat; it never throws and waits for nothing. A beat that nothing is to be done in calls no model. */
  wake(request: WakeRequest): Admission;
  /** An event was queued that asks for no beat: the next regular one delivers it, or a retry where the provider has stopped those. */
  noticeEvent(agentId: string): void;
}

/** Kind of the durable work that carries out beats. */
export const beatKind = 'heartbeat';
