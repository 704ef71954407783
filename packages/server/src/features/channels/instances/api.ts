import type { ChannelState } from '@gatehouse/contract';

/** How an enabled channel is. */
export interface ChannelStanding {
  readonly name: string;
  readonly state: ChannelState;
  readonly stateChangedAtMs: number;
  /** Connections that failed in a row. */
  readonly failures: number;
  /** Whether sends failed so often in a row that it pauses. */
  readonly isPaused: boolean;
}

export type { InstanceConfig } from './config.ts';
export type { OpenedPlatform } from './platforms.ts';
