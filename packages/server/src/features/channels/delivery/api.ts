import type { ChannelEndpoint, DeliveryState } from '@gatehouse/contract';
import type * as z from 'zod';
import type { Button, OutgoingAttachment, OutgoingPart } from '../../../channels/port.ts';
import type { InboxMessage } from '../../unattended/inbox/api.ts';
import type { CallContext, ChatEndpoint } from '../../../kernel/call-context.ts';
import type { OperationCall } from '../../../kernel/db/operation.ts';

/** An endpoint of a chat platform. */
export type Destination = ChatEndpoint;

/** A file of the media store that the sender may use. */
export interface OutgoingFile {
  readonly mediaId: string;
  readonly kind: OutgoingAttachment['kind'];
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: number;
}

/**
 * What is sent to somebody who did not just write; quiet hours hold it. A `question` is sent at once when it would expire within them, and a
 * `critical` notification when they let it pass.
 */
export type Unsolicited = 'report' | 'question' | 'notification' | 'critical';

export interface OutgoingMessage {
  /** What it is for; a repeat under the same key sends nothing. */
  readonly opKey: string;
  readonly to: Destination;
  /** Markdown. */
  readonly text: string;
  readonly subject?: string | undefined;
  /** The platform's id of the message that it answers. */
  readonly replyTo?: string | undefined;
  /** The platform's id of a preview that its first part replaces. */
  readonly edits?: string | undefined;
  readonly buttons?: readonly Button[] | undefined;
  /** Sent after the text, each as a part. */
  readonly files?: readonly OutgoingFile[] | undefined;
  /** Time until which it is worth sending. */
  readonly lifeMs?: number | undefined;
  readonly unsolicited?: Unsolicited | undefined;
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef: string | null;
  readonly turnId: string | null;
}

/** One part of a message, as it is stored. */
export interface PartRow extends Destination, Pick<OutgoingMessage, 'opKey' | 'text' | 'agentId' | 'principalId' | 'conversationRef' | 'turnId'> {
  /** `ob_<uuid>-<part>`: ordered by time, then part. */
  readonly id: string;
  readonly part: number;
  readonly parts: number;
  readonly digest: string;
  readonly subject: string | null;
  readonly replyTo: string | null;
  readonly editsId: string | null;
  readonly buttonsJson: string | null;
  readonly fileJson: string | null;
  readonly state: DeliveryState;
  /** Null for answers. */
  readonly unsolicited: Unsolicited | null;
  readonly attempts: number;
  readonly repeats: number;
  readonly notBeforeMs: number;
  readonly expiresAtMs: number;
  readonly bootId: string | null;
  readonly platformId: string | null;
  readonly errorKind: string | null;
  readonly error: string | null;
  readonly createdAtMs: number;
  readonly ambiguousSinceMs: number | null;
  readonly begunAtMs: number | null;
  readonly endedAtMs: number | null;
}

export interface DeliveryApi {
  /** Returns the first part of a text that is not complete yet. */
  previewOf(channelType: string, text: string): Promise<Pick<OutgoingPart, 'text' | 'markup'>>;
  /** Returns the parts of a message, for an operation that stores them with something else. */
  partsOf(message: OutgoingMessage): PartRow[];
  /** Stores a message for sending. */
  send(message: OutgoingMessage): Promise<void>;
  /** Returns the call that stores a message for sending, in the transaction of what it reports; call `wake` after the commit. */
  sendCall(message: OutgoingMessage): OperationCall;
  /** The same for parts that are ready. */
  storeCall(parts: readonly PartRow[]): OperationCall;
  /** Call after the commit; a hint, as a connected instance also looks now and then. */
  wake(instance: string): void;
}

/** Chats as destinations of what agents do on their own: jobs, announcements, heartbeats. */
export interface EndpointsApi {
  /**
   * Returns the destination that an endpoint names. An agent names only the chat that its turn belongs to, a token without the scope `admin`
   * only direct conversations of its principal. `at` is the parameter that errors name.
   */
  check(endpoint: z.output<typeof ChannelEndpoint>, call: CallContext, at: string): Promise<Destination>;
  /** The same for an endpoint named by type and id: `NAME/ID`, or the id alone when one channel has the type. */
  named(channelType: string, channelId: string, call: CallContext, at: string): Promise<Destination>;
  /** Returns a message addressed to a chat instead of the inbox; an alert for the inbox when no such channel is configured any more. */
  address(message: InboxMessage, to: Destination, how?: { readonly lifeMs?: number | undefined; readonly buttons?: readonly Button[] }): InboxMessage;
}

export type { WaitingParts } from './held.ts';

/** What is stored of a send that ended. */
export interface SendFinish {
  /** Undefined when another process sends it. */
  readonly state: 'accepted' | 'rejected' | 'unknown' | 'pending' | undefined;
  readonly alert?: InboxMessage | undefined;
}

/** Sends what waits for an instance while it is connected. */
export interface Sender {
  /** Whether sends failed so often in a row that it pauses. */
  readonly isPaused: boolean;
  wake(): void;
  /** Runs until `signal` aborts, and resolves when nothing of it runs any more. */
  run(signal: AbortSignal): Promise<void>;
}
