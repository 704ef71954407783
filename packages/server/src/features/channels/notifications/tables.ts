import type { NotificationRow } from './api.ts';

/** Rows of `channel_notification`. */
interface ChannelNotificationTable {
  readonly id: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly instance: string;
  readonly channelType: string;
  readonly conversationId: string;
  readonly digest: string;
  readonly priority: NotificationRow['priority'];
  readonly opKey: string;
  readonly entryId: string;
  readonly state: NotificationRow['state'];
  readonly createdAtMs: number;
  readonly endedAtMs: number | null;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly channelNotification: ChannelNotificationTable;
  }
}
