import type { ChannelVerdict } from '@gatehouse/contract';

/** Rows of `channel_message`. */
interface ChannelMessageTable {
  readonly id: string;
  readonly instance: string;
  readonly channelType: string;
  readonly eventKey: string | null;
  readonly conversationId: string;
  readonly threadId: string | null;
  readonly conversationKind: 'direct' | 'shared';
  readonly senderId: string;
  readonly senderName: string;
  readonly text: string;
  /** The platform's id of the message. */
  readonly platformId: string | null;
  readonly subject: string | null;
  /** Files that came with it, as the wire fetches them. */
  readonly attachmentsJson: string | null;
  /** The files in the media store, and notes about those that are not; null before they were fetched. */
  readonly filesJson: string | null;
  /** The platform's id of the preview of its answer; empty when it may have been sent. */
  readonly previewId: string | null;
  /** New text of a message that a turn has seen, until the next turn; empty when it was deleted. */
  readonly changedText: string | null;
  /** Whether the sender only passed it on. */
  readonly isForwarded: 0 | 1;
  readonly isBot: 0 | 1;
  readonly verdict: ChannelVerdict;
  readonly agentId: string;
  readonly conversationRef: string | null;
  readonly sentAtMs: number;
  readonly receivedAtMs: number;
}

/** Rows of `channel_pairing`. */
interface ChannelPairingTable {
  readonly id: string;
  readonly instance: string;
  readonly channelType: string;
  readonly senderId: string;
  readonly senderName: string;
  readonly conversationId: string;
  /** HMAC of the code; null once approved. */
  readonly codeMac: string | null;
  readonly person: string | null;
  readonly principalId: string | null;
  readonly requestedAtMs: number;
  readonly expiresAtMs: number | null;
}

/** Rows of `channel_cursor`: how far an instance has received. */
interface ChannelCursorTable {
  readonly instance: string;
  readonly cursor: string;
  readonly atMs: number;
}

/** Rows of `channel_agent`: the agent that somebody chose for a conversation. */
interface ChannelAgentTable {
  readonly instance: string;
  readonly channelType: string;
  readonly conversationId: string;
  /** Empty: every thread without a choice. */
  readonly threadId: string;
  readonly agentId: string;
  readonly atMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly channelMessage: ChannelMessageTable;
    readonly channelPairing: ChannelPairingTable;
    readonly channelAgent: ChannelAgentTable;
    readonly channelCursor: ChannelCursorTable;
  }
}
