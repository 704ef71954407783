import * as z from 'zod';
import { RecentMap } from './recent-map.ts';
import type { DiscordRest } from './rest.ts';
import { Snowflake } from './snowflake.ts';

/** What is known of a channel. */
export interface ChannelKind {
  readonly isDirect: boolean;
  /** Set for a thread. */
  readonly parentId: string | undefined;
  readonly guildId: string | undefined;
}

/** Thrown when a channel cannot be asked for now. */
export class ChannelUnknown extends Error {}

export const Channel = z.object({
  id: Snowflake(),
  type: z.int(),
  parent_id: Snowflake().nullish(),
  guild_id: Snowflake().nullish(),
});

const Guild = z.object({ id: Snowflake(), channels: z.array(z.unknown()).default([]), threads: z.array(z.unknown()).default([]) });

const most = 4_096;
/** Direct messages, and groups of them. */
const directTypes: ReadonlySet<number> = new Set([1, 3]);
/** Threads of announcement channels, public and private ones. */
const threadTypes: ReadonlySet<number> = new Set([10, 11, 12]);

const kindOf = ({ type, parent_id: parentId, guild_id: guildId }: z.output<typeof Channel>): ChannelKind => ({
  isDirect: directTypes.has(type),
  parentId: threadTypes.has(type) ? (parentId ?? undefined) : undefined,
  guildId: guildId ?? undefined,
});

/** Kinds of channels: a message does not say whether it was written in a thread. */
export class ChannelKinds {
  readonly #rest: DiscordRest;
  readonly #known = new RecentMap<ChannelKind>(most);

  constructor(rest: DiscordRest) {
    this.#rest = rest;
  }

  /** Takes the channels of a guild, or a new channel or thread. */
  learn(event: string, data: unknown): void {
    if (event !== 'GUILD_CREATE') return this.#learnChannel(data, undefined);
    const guild = Guild.safeParse(data).data;
    for (const channel of [...(guild?.channels ?? []), ...(guild?.threads ?? [])]) this.#learnChannel(channel, guild?.id);
  }

  /** Returns the kind of a channel, which Discord is asked for once. */
  async of(channelId: string, signal: AbortSignal): Promise<ChannelKind> {
    const known = this.#known.get(channelId);
    if (known !== undefined) return this.#keep(channelId, known);
    const answer = await this.#rest.ask('GET', `/channels/${channelId}`, Channel, { signal });
    if (answer.is === 'answered') return this.#keep(channelId, kindOf(answer.value));
    // One that we must not see is not a thread that we could answer in.
    if (answer.is === 'refused') return this.#keep(channelId, { isDirect: false, parentId: undefined, guildId: undefined });
    throw new ChannelUnknown(answer.text);
  }

  #learnChannel(data: unknown, guildId: string | undefined): void {
    const channel = Channel.safeParse(data).data;
    if (channel !== undefined) this.#keep(channel.id, kindOf({ ...channel, guild_id: channel.guild_id ?? guildId }));
  }

  #keep(channelId: string, kind: ChannelKind): ChannelKind {
    this.#known.set(channelId, kind);
    return kind;
  }
}
