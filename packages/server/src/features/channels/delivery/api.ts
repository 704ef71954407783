import type { DeliveryState } from '@gatehouse/contract';
import type { OperationCall } from '../../../kernel/db/operation.ts';

/** An endpoint of a chat platform. */
export interface Destination {
  readonly instance: string;
  readonly channelType: string;
  readonly conversationId: string;
  readonly threadId: string | null;
  readonly conversationKind: 'direct' | 'shared';
}

export interface OutgoingMessage {
  /** What it is for; a repeat under the same key sends nothing. */
  readonly opKey: string;
  readonly to: Destination;
  readonly text: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef: string | null;
  readonly turnId: string | null;
}

/** One part of a message, as it is stored. */
export interface PartRow extends Destination, Omit<OutgoingMessage, 'to'> {
  /** `ob_<uuid>-<part>`: ordered by time, then part. */
  readonly id: string;
  readonly part: number;
  readonly parts: number;
  readonly digest: string;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly notBeforeMs: number;
  readonly expiresAtMs: number;
  readonly bootId: string | null;
  readonly platformId: string | null;
  readonly errorKind: string | null;
  readonly error: string | null;
  readonly createdAtMs: number;
  readonly endedAtMs: number | null;
}

export interface DeliveryApi {
  /** Returns the parts of a message, for an operation that stores them with something else. */
  partsOf(message: OutgoingMessage): PartRow[];
  /** Stores a message for sending. */
  send(message: OutgoingMessage): Promise<void>;
  /** Returns the call that stores a message for sending, in the transaction of what it reports; call `wake` after the commit. */
  sendCall(message: OutgoingMessage): OperationCall;
  /** Call after the commit; a hint, as a connected instance also looks now and then. */
  wake(instance: string): void;
}

/** Sends what waits for an instance while it is connected. */
export interface Sender {
  wake(): void;
  /** Runs until `signal` aborts, and resolves when nothing of it runs any more. */
  run(signal: AbortSignal): Promise<void>;
}
