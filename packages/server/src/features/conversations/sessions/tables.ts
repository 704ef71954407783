import type { Generated } from 'kysely';
import type { MessageRow } from './api.ts';
import type { ConversationRow } from './store.ts';

/** Rows of `conversation`. */
interface ConversationTable {
  readonly id: Generated<number>;
  readonly ref: string;
  readonly tenantId: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly kind: ConversationRow['kind'];
  readonly sessionKey: string;
  readonly lastSeq: number;
  readonly messageCount: number;
  readonly turnCount: number;
  readonly stepCount: number;
  readonly toolCallCount: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costNano: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly title: string | null;
  readonly forkedFrom: string | null;
  readonly resetCount: Generated<number>;
  readonly compactionCount: Generated<number>;
  readonly modelSeqFloor: Generated<number>;
  readonly taint: Generated<ConversationRow['taint']>;
  readonly indexedSeq: Generated<number>;
  readonly synthetic: Generated<ConversationRow['synthetic']>;
  readonly name: string | null;
  readonly shelf: Generated<ConversationRow['shelf']>;
  readonly source: Generated<ConversationRow['source']>;
  readonly tags: Generated<string>;
}

/** Rows of `message`. */
interface MessageTable {
  readonly id: Generated<number>;
  readonly conversationId: number;
  readonly seq: number;
  readonly turnId: string;
  readonly role: MessageRow['role'];
  readonly content: string;
  readonly toolJson: string | null;
  readonly createdAtMs: number;
  readonly attachmentsJson: string | null;
  readonly reasoningJson: string | null;
}

/** Rows of `message_feedback`. */
interface MessageFeedbackTable {
  readonly conversationId: number;
  readonly turnId: string;
  readonly seq: number;
  readonly rating: 'good' | 'bad';
  readonly note: string | null;
  readonly principalId: string;
  readonly atMs: number;
}

/** Rows of `session_archive`. */
interface SessionArchiveTable {
  readonly id: string;
  readonly ref: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly sessionKey: string;
  readonly metadataJson: string;
  readonly messagesJson: string;
  readonly archivedAtMs: number;
}

/** Rows of `message_fts`. */
interface MessageFtsTable {
  readonly rowid: number;
  readonly body: string;
  readonly part: string;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly conversation: ConversationTable;
    readonly message: MessageTable;
    readonly messageFeedback: MessageFeedbackTable;
    readonly sessionArchive: SessionArchiveTable;
    readonly messageFts: MessageFtsTable;
  }
}
