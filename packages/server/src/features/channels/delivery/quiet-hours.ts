import type { QuietHours } from '@gatehouse/contract';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { PartRow } from './api.ts';

/** Hours of the day in a zone, as those of heartbeats. */
export interface DayHours {
  readonly start: string;
  readonly end: string;
  readonly timeZone?: string | undefined;
}

/** What quiet hours are about. */
export type HoldablePart = Pick<PartRow, 'instance' | 'conversationId' | 'agentId' | 'unsolicited' | 'expiresAtMs'>;

/** Returns the end of the quiet hours that hold a part at a time; undefined when it may be sent. */
export type QuietUntil = (part: HoldablePart, atMs: number) => number | undefined;

interface ChannelHours {
  readonly quietHours?: QuietHours | undefined;
  readonly quietHoursOf: Readonly<Record<string, QuietHours>>;
}

export interface QuietDeps {
  /** The channels as they are configured now. */
  readonly channels: () => Readonly<Record<string, ChannelHours>>;
  readonly agents: Pick<AgentsApi, 'find'>;
  /** Returns the time itself when it lies within the hours, else their next start. */
  readonly nextWithin: (hours: DayHours, atMs: number) => number;
}

/** Quiet hours of channels, for what nobody asked for, and of agents, for notifications: as they are configured now. */
export function createQuietUntil({ channels, agents, nextWithin }: QuietDeps): QuietUntil {
  return ({ instance, conversationId, agentId, unsolicited, expiresAtMs }, atMs) => {
    if (unsolicited === null) return undefined;
    const channel = Object.hasOwn(channels(), instance) ? channels()[instance] : undefined;
    const isNotification = unsolicited === 'notification' || unsolicited === 'critical';
    const all = [hoursIn(channel, conversationId), isNotification ? agents.find(agentId)?.config.notification.quietHours : undefined];
    const ends = all.flatMap((hours) =>
      hours === undefined || (unsolicited === 'critical' && hours.criticalBypass)
        ? []
        : // The other hours of the day.
          nextWithin({ start: hours.end, end: hours.start, timeZone: hours.timeZone }, atMs),
    );
    const untilMs = Math.max(atMs, ...ends);
    const isUrgent = unsolicited === 'question' && expiresAtMs <= untilMs;
    return untilMs > atMs && !isUrgent ? untilMs : undefined;
  };
}

function hoursIn(channel: ChannelHours | undefined, conversationId: string): QuietHours | undefined {
  if (channel === undefined) return undefined;
  return Object.hasOwn(channel.quietHoursOf, conversationId) ? channel.quietHoursOf[conversationId] : channel.quietHours;
}
