import type { AuditRow } from '../../../kernel/db/audit.ts';
import type { DeliveryState } from '@gatehouse/contract';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Destination, PartRow } from '../delivery/api.ts';

/** `queued`: its message is in the outbox, which says what became of it; `started`: the platform was asked, and the answer is not stored. */
export type OperationState = 'queued' | 'started' | 'done' | 'unknown';

/** One write of a program or an agent that is carried out once. */
export interface MessageOperation {
  /** Digest of what identifies it. */
  readonly id: string;
  readonly method: string;
  /** Digest of its content: another one under the same id is refused. */
  readonly digest: string;
  readonly rootRunId: string | null;
  readonly agentId: string;
  readonly state: OperationState;
  /** The run of the daemon that began it. */
  readonly bootId: string;
  readonly atMs: number;
}

/** Whether an operation is new. */
export type Begun =
  | { readonly is: 'new' }
  | { readonly is: 'repeat'; readonly state: OperationState; readonly bootId: string }
  | { readonly is: 'conflict' };

/** Input of `sendMessage`. */
export interface NewSend {
  readonly operation?: MessageOperation | undefined;
  readonly parts: readonly PartRow[];
  readonly audit?: AuditRow | undefined;
}

/** What became of one part of a message. */
export interface PartState extends Pick<PartRow, 'id' | 'part' | 'state' | 'platformId' | 'errorKind' | 'error'> {
  readonly state: DeliveryState;
}

/** Whose conversation an endpoint is. */
export interface Holder {
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef: string | null;
}

/** A conversation that a caller may write into. */
export interface Target extends Holder {
  readonly to: Destination;
}

export interface Coordinates {
  readonly endpoint: {
    readonly channelType: string;
    readonly channelInstanceId: string;
    readonly conversationId: string;
    readonly threadId?: string | undefined;
    readonly conversationKind: 'direct' | 'shared';
  };
  readonly channel_type?: string | undefined;
  readonly channel_id?: string | undefined;
}

/** Finds the conversation of an endpoint; fails alike for those that do not exist and those that are not the caller's. */
export type FindTarget = (coordinates: Coordinates, call: CallContext) => Promise<Target>;
