/** What is put into the inbox, the built-in channel `gateway`. */
export interface InboxMessage {
  /** `in_<uuid>`, by `newId('in')`. */
  readonly id: string;
  /** Of the delivery, unique: the same key again delivers nothing more. */
  readonly opKey: string;
  /** Of what is delivered, to tell a repeat from a misuse of the key. */
  readonly digest: string;
  readonly source: 'cron' | 'heartbeat' | 'webhook' | 'turn' | 'subagent' | 'graph' | 'autonomy';
  readonly agentId: string;
  /** The conversation that it belongs to; null when it belongs to none. */
  readonly conversationRef: string | null;
  /** Who may read it, beside admins. */
  readonly principalId: string;
  readonly level: 'info' | 'alert';
  readonly text: string;
  readonly atMs: number;
}

export interface InboxApi {
  /** Announces a message after the commit that delivered it. */
  announce(message: InboxMessage): void;
}
