import type { PartRow } from '../../channels/delivery/api.ts';
import type { OperationCall } from '../../../kernel/db/operation.ts';

/** A message of the inbox, the built-in channel `gateway`. */
export interface InboxMessage {
  /** `in_<uuid>`, from `newId('in')`. */
  readonly id: string;
  /** Unique key of the delivery; a repeat with the same key delivers nothing. */
  readonly opKey: string;
  /** Digest of the content, to distinguish a repeat from reuse of the key. */
  readonly digest: string;
  readonly source: 'cron' | 'heartbeat' | 'webhook' | 'turn' | 'subagent' | 'graph' | 'autonomy' | 'mcp' | 'channel';
  readonly agentId: string;
  /** The conversation of the message; null when it has none. */
  readonly conversationRef: string | null;
  /** The principal who may read it, in addition to admins. */
  readonly principalId: string;
  readonly level: 'info' | 'alert';
  readonly text: string;
  readonly atMs: number;
  /** Present when it goes to a chat instead of the inbox: what to send (`EndpointsApi.address`). */
  readonly parts?: readonly PartRow[] | undefined;
}

export interface InboxApi {
  /** Returns the call that delivers a message in the transaction of the event that it reports; call `announce` after the commit. */
  deliverCall(message: InboxMessage): OperationCall;
  /** Announces a message after the commit that delivered it. */
  announce(message: InboxMessage): void;
}
