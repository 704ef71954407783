import * as z from 'zod';
import type { LookUp, OutgoingPart } from '../port.ts';
import { contentOf, nonceOf } from './body.ts';
import { Message } from './message.ts';
import type { RecentMap } from './recent-map.ts';
import type { DiscordRest } from './rest.ts';
import { snowflakeAt } from './snowflake.ts';

export interface LookUpRequest {
  readonly rest: DiscordRest;
  /** Keys of the sends that were confirmed, by the id of the message: none of them is another send. */
  readonly sent: RecentMap<string>;
  readonly us: string;
  readonly channel: string;
  readonly part: OutgoingPart;
  readonly key: string;
  readonly sinceMs: number;
  readonly signal: AbortSignal;
}

/** The clock of Discord, by which the ids count, may differ from ours. */
const clockSkewMs = 30_000;
const pageSize = 100;
const maxPages = 5;

/** Looks for a send in the history, by its nonce; where the history has none, by our name and the content. */
export async function lookUp({ rest, sent, us, channel, part, key, sinceMs, signal }: LookUpRequest): Promise<LookUp> {
  const nonce = nonceOf(key);
  let after = snowflakeAt(sinceMs - clockSkewMs);
  for (let page = 0; page < maxPages; page += 1) {
    const query = { after, limit: String(pageSize) };
    const answer = await rest.ask('GET', `/channels/${channel}/messages`, z.array(Message).max(pageSize), { signal, query });
    if (answer.is === 'refused') return { is: 'unclear', text: answer.text };
    if (answer.is !== 'answered') return { is: 'unclear', text: answer.text, retry: true };
    const own = answer.value.filter((message) => message.author.id === us && (sent.get(message.id) ?? key) === key);
    const found = own.find((message) => message.nonce === nonce) ?? own.find((message) => message.nonce == null && isSame(message, part));
    if (found !== undefined) return { is: 'found', platformId: found.id };
    if (answer.value.length < pageSize) return { is: 'absent' };
    after = answer.value.reduce((newest, { id }) => (BigInt(id) > BigInt(newest) ? id : newest), after);
  }
  return { is: 'unclear', text: 'The history is too long to look through' };
}

function isSame({ content, attachments }: Message, part: OutgoingPart): boolean {
  // Discord removes space at both ends.
  if (content.trim() !== contentOf(part).trim()) return false;
  // The outbox does not read a file to look for it.
  return content !== '' || attachments.length === 1;
}
