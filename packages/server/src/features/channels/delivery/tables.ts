import type { DeliveryState } from '@gatehouse/contract';
import type { Unsolicited } from './api.ts';

/** Rows of `outbound_message`: one part of a message to a platform. */
interface OutboundMessageTable {
  readonly id: string;
  /** What the message is for: the same key sends nothing again. */
  readonly opKey: string;
  readonly part: number;
  readonly parts: number;
  readonly digest: string;
  readonly instance: string;
  readonly channelType: string;
  readonly conversationId: string;
  readonly threadId: string | null;
  readonly conversationKind: 'direct' | 'shared';
  /** Markdown of the agent; rendered at each try. */
  readonly text: string;
  readonly subject: string | null;
  /** The platform's id of the message that it answers. */
  readonly replyTo: string | null;
  /** The platform's id of a preview that it replaces. */
  readonly editsId: string | null;
  readonly buttonsJson: string | null;
  readonly fileJson: string | null;
  readonly state: DeliveryState;
  /** What quiet hours hold; null for answers. */
  readonly unsolicited: Unsolicited | null;
  readonly attempts: number;
  /** How often it was sent again although it may have arrived, as the operator chose (`onUnknown: resend`). */
  readonly repeats: number;
  readonly notBeforeMs: number;
  readonly expiresAtMs: number;
  /** The run of the daemon that is sending it. */
  readonly bootId: string | null;
  readonly platformId: string | null;
  readonly errorKind: string | null;
  readonly error: string | null;
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef: string | null;
  readonly turnId: string | null;
  readonly createdAtMs: number;
  /** Time of the first try whose end is ambiguous; null while there is none. */
  readonly ambiguousSinceMs: number | null;
  /** Time of the last try. */
  readonly begunAtMs: number | null;
  readonly endedAtMs: number | null;
}

/** Rows of `channel_removed`: direct conversations whose person may not be written to any more. */
interface ChannelRemovedTable {
  readonly instance: string;
  readonly channelType: string;
  readonly conversationId: string;
  readonly atMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly channelRemoved: ChannelRemovedTable;
    readonly outboundMessage: OutboundMessageTable;
  }
}
