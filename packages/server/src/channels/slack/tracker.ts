import * as z from 'zod';
import { parseJson } from '../../kernel/json.ts';

const mostConversations = 200;
const mostThreads = 100;

/** A time stamp of Slack, which is the id of a message within its conversation. */
export const Ts = z.string().regex(/^\d{1,12}\.\d{6}$/);
const Cursor = z.strictObject({
  conversations: z.record(z.string().max(32), Ts),
  threads: z.record(z.string().max(64), z.strictObject({ ts: Ts, isOurs: z.boolean() })),
});

interface Entry {
  /** Newest message. */
  ts: string;
  /** While messages may be missing: the newest one before those. */
  missingAfter: string | undefined;
  isOurs: boolean;
}

/** A conversation, or a thread of one. */
export interface Spot {
  readonly channel: string;
  readonly threadTs: string | undefined;
}

/** What is known of active conversations and threads: the newest message of each. Its text is the cursor of the channel. */
export class Tracker {
  /** Least recently active first. */
  readonly #conversations = new Map<string, Entry>();
  readonly #threads = new Map<string, Entry>();

  /** Reads a cursor; one that cannot be read is as good as none. */
  constructor(cursor: string | undefined) {
    if (cursor === undefined) return;
    const parsed = Cursor.safeParse(jsonOf(cursor));
    if (!parsed.success) return;
    const { conversations, threads } = parsed.data;
    for (const [id, ts] of Object.entries(conversations)) this.#conversations.set(id, { ts, missingAfter: undefined, isOurs: false });
    for (const [id, { ts, isOurs }] of Object.entries(threads)) this.#threads.set(id, { ts, missingAfter: undefined, isOurs });
  }

  /** A connection begins: of every conversation messages may be missing. */
  suspectAll(): void {
    for (const entry of [...this.#conversations.values(), ...this.#threads.values()]) entry.missingAfter ??= entry.ts;
  }

  /** Returns the newest message before those that may be missing; undefined when none are. */
  missingAfter(spot: Spot): string | undefined {
    return this.#entry(spot)?.missingAfter;
  }

  /** Messages after `ts` may be missing. */
  suspect(spot: Spot, ts: string): void {
    const entry = this.#entry(spot);
    if (entry !== undefined) entry.missingAfter = ts;
  }

  caughtUp(spot: Spot): void {
    const entry = this.#entry(spot);
    if (entry !== undefined) entry.missingAfter = undefined;
  }

  /** Conversations and threads of which messages may be missing, the most recently active first. */
  suspects(): Spot[] {
    const of = (entries: Map<string, Entry>) => [...entries].filter(([, { missingAfter }]) => missingAfter !== undefined).toReversed();
    return [...of(this.#conversations), ...of(this.#threads)].map(([key]) => spotOf(key));
  }

  /** Notes a message: `ours` when we wrote it or its thread, `ofUs` when it mentions us. Other threads are not kept. */
  saw({ channel, threadTs }: Spot, ts: string, about: 'ours' | 'ofUs' | 'other'): void {
    if (threadTs === undefined) note(this.#conversations, channel, ts, false, mostConversations);
    else {
      if (!this.#conversations.has(channel)) note(this.#conversations, channel, ts, false, mostConversations);
      const key = keyOf(channel, threadTs);
      if (about !== 'other' || this.#threads.has(key)) note(this.#threads, key, ts, about === 'ours', mostThreads);
    }
  }

  forget({ channel, threadTs }: Spot): void {
    if (threadTs === undefined) this.#conversations.delete(channel);
    else this.#threads.delete(keyOf(channel, threadTs));
  }

  /** Whether we wrote in a thread. */
  isOurThread(channel: string, threadTs: string): boolean {
    return this.#threads.get(keyOf(channel, threadTs))?.isOurs === true;
  }

  /** The conversation that was active last, and its newest message. */
  newest(): { readonly channel: string; readonly ts: string } | undefined {
    const last = [...this.#conversations].at(-1);
    return last === undefined ? undefined : { channel: last[0], ts: last[1].ts };
  }

  /** Whether a message of a conversation is newer than all that are known. */
  isNew({ channel }: Spot, ts: string): boolean {
    const entry = this.#conversations.get(channel);
    return entry === undefined || isLater(ts, entry.ts);
  }

  toCursor(): string {
    const conversations = Object.fromEntries([...this.#conversations].map(([id, { ts, missingAfter }]) => [id, missingAfter ?? ts]));
    const threads = Object.fromEntries([...this.#threads].map(([key, { ts, missingAfter, isOurs }]) => [key, { ts: missingAfter ?? ts, isOurs }]));
    return JSON.stringify({ conversations, threads });
  }

  #entry({ channel, threadTs }: Spot): Entry | undefined {
    return threadTs === undefined ? this.#conversations.get(channel) : this.#threads.get(keyOf(channel, threadTs));
  }
}

export const isLater = (one: string, other: string): boolean => Number(one) > Number(other);

function note(entries: Map<string, Entry>, key: string, ts: string, isOurs: boolean, most: number): void {
  const known = entries.get(key);
  entries.delete(key);
  entries.set(key, {
    ts: known === undefined || isLater(ts, known.ts) ? ts : known.ts,
    missingAfter: known?.missingAfter,
    isOurs: isOurs || known?.isOurs === true,
  });
  const [oldest] = entries.keys();
  if (entries.size > most && oldest !== undefined) entries.delete(oldest);
}

const keyOf = (channel: string, threadTs: string): string => `${channel}:${threadTs}`;

function spotOf(key: string): Spot {
  const [channel = '', threadTs] = key.split(':');
  return { channel, threadTs };
}

function jsonOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
