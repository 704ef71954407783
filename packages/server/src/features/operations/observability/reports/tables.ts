import type { ResetTarget } from '@gatehouse/contract';
import type {} from '../../../../kernel/db/tables.ts';

/** Rows of `obs_reset`. */
interface ObsResetTable {
  readonly name: ResetTarget;
  readonly atMs: number;
  /** Number of the newest trace record, or event, at the time. */
  readonly upTo: number;
}

/** Rows of `channel_activity`. */
interface ChannelActivityTable {
  readonly channelType: string;
  readonly channelId: string;
  readonly agentId: string;
  readonly lastActiveAtMs: number;
  readonly messagesSent: number;
  readonly messagesReceived: number;
}

declare module '../../../../kernel/db/tables.ts' {
  interface Tables {
    readonly obsReset: ObsResetTable;
    readonly channelActivity: ChannelActivityTable;
  }
}
