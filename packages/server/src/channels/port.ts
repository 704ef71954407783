import type { ChannelCapabilities } from '@gatehouse/contract';

/**
 * The port between the gateway and the wire of a chat platform. A wire connects, receives and sends; it has no SQL, no retries, no rendering and
 * knows no agents. Timers are only those of the wire. `channels/<platform>/platform.ts` has the data, which is always loaded, and
 * `channels/<platform>/<platform>.ts` the wire, which is loaded when an instance is enabled.
 */
export interface Platform {
  readonly capabilities: ChannelCapabilities;
  readonly text: TextRules;
  readonly rate: RatePlan;
  readonly connectionMode: 'socket' | 'poll';
  /** How long after a send with an ambiguous end the same key may be sent again; for platforms that know their keys again. */
  readonly keyWindowMs?: number;
}

/** Opens nothing yet: `Adapter.run` connects. */
export type OpenWire<Config> = (deps: AdapterDeps<Config>) => Adapter;

/** The markup of a platform. */
export type TextFlavour = 'plain' | 'irc' | 'telegram' | 'discord' | 'slack' | 'matrix' | 'email';

/** How texts are rendered and cut into parts. */
export interface TextRules {
  readonly flavour: TextFlavour;
  /** Largest part, in `unit`. */
  readonly most: number;
  readonly unit: 'utf16' | 'bytes';
  /** A line break is the end of a part: the platform has none. */
  readonly isLine: boolean;
  /** Parts of one answer at most; the rest is cut with a note. */
  readonly maxParts: number;
}

/** A token bucket of an instance, and one of each conversation. */
export interface RatePlan {
  readonly burst: number;
  readonly perSecond: number;
  readonly perConversation?: { readonly burst: number; readonly perSecond: number };
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
  /** The platform's own id of the event, unique within the instance; undefined on platforms without ids. */
  readonly eventKey: string | undefined;
  /** The platform's id of the message, by which it is answered, reacted to and edited. */
  readonly messageId?: string | undefined;
  readonly conversationId: string;
  readonly threadId?: string | undefined;
  readonly conversationKind: 'direct' | 'shared';
  /** What pairing is bound to: an account that the platform vouches for, otherwise the full address. */
  readonly senderId: string;
  readonly senderName: string;
  readonly isBot: boolean;
  /** Anybody could have written it in the name of the sender: it is not answered, as the answer would go to somebody else. */
  readonly isUnverified?: boolean | undefined;
  /** Without the mention of our name at its beginning. A pressed button is a message with the text of the button's command. */
  readonly text: string;
  readonly subject?: string | undefined;
  /** Whether it names us, or answers one of our messages. */
  readonly mentionsUs: boolean;
  /** The sender passed on what somebody else wrote: it has the authority of nobody. */
  readonly isForwarded?: boolean | undefined;
  readonly sentAtMs: number;
  readonly attachments?: readonly ReceivedAttachment[] | undefined;
  /** Set when it is a new version of an earlier message: the `messageId` of both. With `isDeleted` the message was deleted. */
  readonly edits?: string | undefined;
  readonly isDeleted?: boolean | undefined;
}

/** A file of a received message: fetched later with `Adapter.download`. */
export interface ReceivedAttachment {
  /** What the wire fetches it by, also in a later process; at most 1,024 characters, without secrets. */
  readonly ref: string;
  readonly name: string;
  /** Declared by the sender: never trusted. */
  readonly mediaType?: string | undefined;
  /** Declared by the platform. */
  readonly bytes?: number | undefined;
  readonly isVoice?: boolean | undefined;
}

export interface Sink {
  /** The cursor that was committed last; undefined at the first connect ever. */
  readonly cursor: string | undefined;
  /**
   * Resolves when the messages and the cursor are committed; only then the platform gets its acknowledgement. Rejects when they could not be
   * stored: receive them again. `messages` may be empty, to store a cursor alone.
   */
  take(messages: readonly ReceivedMessage[], cursor?: string): Promise<void>;
  /** The peer proved that it is alive: an answer, a pong. */
  alive(): void;
  /** The connection is usable; `name`: how the platform calls us. */
  connected(name: string): void;
}

export interface Place {
  readonly conversationId: string;
  readonly threadId?: string | undefined;
}

/** A message of a place, by the platform's id. */
export interface MessageRef extends Place {
  readonly messageId: string;
}

export interface OutgoingPart extends Place {
  /**
   * Ids of the people whom a direct message is for, as their messages had them: a wire whose conversations are names that anybody may take makes
   * sure that one of them has it. Empty or undefined: not known.
   */
  readonly recipients?: readonly string[] | undefined;
  /** Without markup. */
  readonly text: string;
  /** The same in the markup of the platform; undefined where it has none. */
  readonly markup?: string | undefined;
  readonly subject?: string | undefined;
  /** The platform's id of the message that this one answers. */
  readonly replyTo?: string | undefined;
  readonly buttons?: readonly Button[] | undefined;
  /** A file, with `text` as its caption. */
  readonly attachment?: OutgoingAttachment | undefined;
}

/** Pressing it is a message with the text `command` of the person who pressed. At most 64 bytes. */
export interface Button {
  readonly label: string;
  readonly command: string;
}

export interface OutgoingAttachment {
  readonly kind: 'image' | 'file' | 'audio' | 'video' | 'voice';
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: number;
  read(): Promise<Uint8Array>;
}

/** Evidence of a send: `notSent` only when certainly nothing arrived, `ambiguous` when it may have. */
export type SendResult =
  | { readonly is: 'sent'; readonly platformId?: string | undefined }
  /** `scope: 'instance'`: nothing else is accepted before `retryAfterMs` either. */
  | { readonly is: 'notSent'; readonly text: string; readonly retryAfterMs?: number | undefined; readonly scope?: 'instance' | undefined }
  | { readonly is: 'rejected'; readonly kind: string; readonly text: string }
  | { readonly is: 'ambiguous'; readonly text: string };

/** What became of an ambiguous send. */
export type LookUp =
  | { readonly is: 'found'; readonly platformId?: string | undefined }
  | { readonly is: 'absent' }
  /** It cannot be found out now (`retry`) or ever. */
  | { readonly is: 'unclear'; readonly text: string; readonly retry?: boolean };

/** End of a call other than a send; such a call is never repeated. */
export type Act<Value> =
  | { readonly is: 'done'; readonly value: Value }
  | {
      readonly is: 'failed';
      readonly kind: 'not_found' | 'denied' | 'invalid' | 'rate_limited' | 'unavailable' | 'ambiguous';
      readonly text: string;
      readonly retryAfterMs?: number | undefined;
    };

export interface FetchedMessage {
  readonly messageId: string;
  readonly senderId: string;
  readonly text: string;
  readonly sentAtMs: number;
}

export type Download =
  | { readonly is: 'opened'; readonly stream: AsyncIterable<Uint8Array> }
  /** It does not exist any more, or is larger than the platform permits. */
  | { readonly is: 'gone'; readonly text: string }
  | { readonly is: 'unavailable'; readonly text: string };

interface CallOptions {
  readonly signal: AbortSignal;
}

/**
 * Every method but `run` and `send` is optional: `capabilities` says what a platform has. None of them rejects. Calls may come while it is not
 * connected.
 */
export interface Adapter {
  /** Connects and receives until `signal` aborts or the connection ends; never rejects. A new call connects again. */
  run(signal: AbortSignal, sink: Sink): Promise<Ended>;
  /** Sends one part; never rejects. `key`: the same for each try of the same part. */
  send(part: OutgoingPart, options: CallOptions & { readonly key: string }): Promise<SendResult>;
  /** Finds out whether an ambiguous send of `part`, first tried at `sinceMs`, arrived. */
  lookUp?(part: OutgoingPart, options: CallOptions & { readonly key: string; readonly sinceMs: number }): Promise<LookUp>;
  edit?(message: MessageRef, part: Pick<OutgoingPart, 'text' | 'markup' | 'buttons'>, options: CallOptions): Promise<Act<object>>;
  remove?(message: MessageRef, options: CallOptions): Promise<Act<object>>;
  react?(message: MessageRef, emoji: string, options: CallOptions): Promise<Act<object>>;
  unreact?(message: MessageRef, emoji: string, options: CallOptions): Promise<Act<object>>;
  /** Shows for some seconds that an answer is being written. */
  typing?(place: Place, options: CallOptions): Promise<Act<object>>;
  /** Returns the newest messages first, those before the message `before`. */
  fetch?(
    place: Place,
    options: CallOptions & { readonly limit: number; readonly before?: string | undefined },
  ): Promise<Act<readonly FetchedMessage[]>>;
  download?(ref: string, options: CallOptions): Promise<Download>;
  /** Carries out an action of `capabilities.actions`; `params` have passed its schema. Returns the result of the method. */
  action?(
    name: string,
    params: Readonly<Record<string, unknown>>,
    place: Place,
    options: CallOptions,
  ): Promise<Act<Readonly<Record<string, unknown>>>>;
}
