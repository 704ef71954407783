import * as z from 'zod';
import { sleep } from '../../kernel/timers.ts';
import type { AdapterDeps } from '../port.ts';
import { Message } from './message.ts';
import type { Position } from './position.ts';
import type { DiscordRest } from './rest.ts';
import { isNewer } from './snowflake.ts';

/** How often the history is compared with what the gateway reported. */
const probeMs = 5 * 60_000;
/** An event may be that late. */
const lateMs = 30_000;
const probeLimit = 20;

export interface DeafnessDeps extends Pick<AdapterDeps<unknown>, 'clock'> {
  readonly rest: DiscordRest;
  readonly position: Position;
  /** Resolves when no event waits to be handled. */
  readonly settled: () => Promise<void>;
  readonly signal: AbortSignal;
}

/**
 * Resolves with the most recently active channel when its history has a message that the gateway does not report: heartbeats prove a connection
 * alive, but not that events come over it. Resolves with undefined when `signal` aborts.
 */
export async function findDeafChannel({ clock, rest, position, settled, signal }: DeafnessDeps): Promise<string | undefined> {
  for (;;) {
    await sleep(clock, probeMs, signal);
    if (signal.aborted) return undefined;
    const [channelId, last] = [...position.channels].at(-1) ?? [];
    if (channelId === undefined || last === undefined) continue;
    const query = { after: last, limit: String(probeLimit) };
    const answer = await rest.ask('GET', `/channels/${channelId}/messages`, z.array(z.unknown()).max(probeLimit), { signal, query });
    const ids = answer.is === 'answered' ? answer.value.flatMap((one) => Message.safeParse(one).data?.id ?? []) : [];
    if (ids.length === 0) continue;
    await sleep(clock, lateMs, signal);
    await settled();
    if (signal.aborted) return undefined;
    const reported = position.channels.get(channelId);
    if (reported !== undefined && ids.some((id) => isNewer(id, reported))) return channelId;
  }
}
