import * as z from 'zod';
import { parseJson } from '../../kernel/json.ts';
import { isNewer, Snowflake } from './snowflake.ts';

/** A session of the gateway, which another connection or process can resume. */
export interface Session {
  readonly id: string;
  readonly url: string;
  readonly seq: number;
}

/** Conversations whose messages are fetched when the session is gone. */
const maxChannels = 200;

const Stored = z.object({
  session: z.object({ id: z.string().min(1).max(256), url: z.string().max(512), seq: z.int().min(0) }).optional(),
  channels: z.array(z.tuple([Snowflake(), Snowflake()])).max(maxChannels),
});

/** What was received: the session with its last sequence, and the last message of each channel in which the agent talks. */
export class Position {
  session: Session | undefined;
  /** Least recently active first. */
  readonly channels: Map<string, string>;

  constructor(cursor: string | undefined) {
    const stored = Stored.safeParse(read(cursor));
    this.session = stored.data?.session;
    this.channels = new Map(stored.data?.channels);
  }

  /** A message was received; one of a channel in which the agent does not talk is only noted with `isOurs`. */
  saw(channelId: string, messageId: string, isOurs: boolean): void {
    const last = this.channels.get(channelId);
    if (last === undefined && !isOurs) return;
    this.channels.delete(channelId);
    this.channels.set(channelId, last !== undefined && isNewer(last, messageId) ? last : messageId);
    const [oldest] = this.channels.keys();
    if (this.channels.size > maxChannels && oldest !== undefined) this.channels.delete(oldest);
  }

  toCursor(): string {
    return JSON.stringify({ session: this.session, channels: [...this.channels] });
  }
}

function read(cursor: string | undefined): unknown {
  try {
    return cursor === undefined ? undefined : parseJson(cursor);
  } catch {
    return undefined;
  }
}
