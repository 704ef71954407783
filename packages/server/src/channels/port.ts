import type { ChannelCapabilities } from '@gatehouse/contract';

/**
 * The port between the gateway and the wire of a chat platform. A wire connects, receives and sends; it has no SQL, no retries, no rendering and
 * knows no agents. Timers are only those of the wire.
 */
export interface Platform<Config> {
  readonly capabilities: ChannelCapabilities;
  readonly rate: RatePlan;
  /** Opens nothing yet: `Adapter.run` connects. */
  open(deps: AdapterDeps<Config>): Adapter;
}

/** How texts are cut into parts. */
export interface TextRules {
  /** Largest part, in `unit`. */
  readonly most: number;
  readonly unit: 'utf16' | 'bytes';
  /** A line break is the end of a part: the platform has none. */
  readonly isLine: boolean;
  /** Parts of one answer at most; the rest is cut with a note. */
  readonly maxParts: number;
}

/** A token bucket of an instance. */
export interface RatePlan {
  readonly burst: number;
  readonly perSecond: number;
}

export interface AdapterDeps<Config> {
  readonly config: Config;
  /** Monotonic milliseconds and timers. */
  readonly clock: WireClock;
  readonly log: { debug(fields: object, text: string): void; warn(fields: object, text: string): void };
}

export interface WireClock {
  now(): number;
  monotonic(): number;
  /** Calls once after `ms`; returns how to cancel it. */
  after(ms: number, run: () => void): () => void;
}

/** Why a connection ended. `unauthorized` and `conflict` are not tried again soon. */
export interface Ended {
  readonly ended: 'stopped' | 'unauthorized' | 'conflict' | 'transient';
  /** A sentence for the operator, without secrets. */
  readonly text: string;
}

export interface ReceivedMessage {
  /** The platform's own id of the message, unique within the instance; undefined on platforms without ids. */
  readonly eventKey: string | undefined;
  readonly conversationId: string;
  readonly threadId?: string;
  readonly conversationKind: 'direct' | 'shared';
  /** What pairing is bound to: an account that the platform vouches for, otherwise the full address. */
  readonly senderId: string;
  readonly senderName: string;
  readonly isBot: boolean;
  /** Without the mention of our name at its beginning. */
  readonly text: string;
  /** Whether it names us, or answers one of our messages. */
  readonly mentionsUs: boolean;
  readonly sentAtMs: number;
}

export interface Sink {
  /** Resolves when the messages are committed; only then the platform gets its acknowledgement. Rejects when they could not be stored: receive them again. */
  take(messages: readonly ReceivedMessage[]): Promise<void>;
  /** The peer proved that it is alive: an answer, a pong. */
  alive(): void;
  /** The connection is usable; `name`: how the platform calls us. */
  connected(name: string): void;
}

export interface OutgoingPart {
  readonly conversationId: string;
  readonly threadId?: string | undefined;
  readonly text: string;
}

/** Evidence of a send: `notSent` only when certainly nothing arrived, `ambiguous` when it may have. */
export type SendResult =
  | { readonly is: 'sent'; readonly platformId?: string }
  | { readonly is: 'notSent'; readonly text: string; readonly retryAfterMs?: number }
  | { readonly is: 'rejected'; readonly kind: string; readonly text: string }
  | { readonly is: 'ambiguous'; readonly text: string };

export interface Adapter {
  /** Connects and receives until `signal` aborts or the connection ends; never rejects. A new call connects again. */
  run(signal: AbortSignal, sink: Sink): Promise<Ended>;
  /** Sends one part; never rejects. `key`: the same for each try of the same part. */
  send(part: OutgoingPart, options: { readonly key: string; readonly signal: AbortSignal }): Promise<SendResult>;
}
