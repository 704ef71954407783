import type { NotificationPriority } from '@gatehouse/contract';
import type { Destination, PartRow } from '../delivery/api.ts';

/** `open`: the outbox sends it, after quiet hours. */
export type NotificationState = 'open' | 'delivered' | 'failed';

export interface NotificationRow extends Pick<Destination, 'instance' | 'channelType' | 'conversationId'> {
  /** `nt_<uuid>` */
  readonly id: string;
  readonly agentId: string;
  readonly principalId: string;
  /** Digest of text and conversation. */
  readonly digest: string;
  readonly priority: NotificationPriority;
  readonly opKey: string;
  /** The first part in the outbox. */
  readonly entryId: string;
  readonly state: NotificationState;
  readonly createdAtMs: number;
}

/** Input of `sendNotification`. */
export interface NewNotification {
  readonly row: NotificationRow;
  readonly parts: readonly PartRow[];
  readonly maxPerHour: number;
  readonly dedupeWindowMs: number;
}

export type Admission = 'accepted' | 'rate_limited' | 'duplicate';
