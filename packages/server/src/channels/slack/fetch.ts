import type { Act, FetchedMessage, Place } from '../port.ts';
import { failureOf, type SlackClient } from './client.ts';
import { type PageMessage, readPage } from './history.ts';
import { type Identity, msOf, peopleOf, plainTextOf, senderIdOf, workspaceOf } from './message.ts';
import type { People } from './people.ts';

const largestPage = 200;
/** A thread begins with its oldest message: pages up to its newest ones. */
const mostPages = 10;

export interface FetchDeps {
  readonly client: SlackClient;
  readonly people: People;
  readonly self: Identity | undefined;
}

export interface FetchQuery {
  readonly limit: number;
  readonly before: string | undefined;
  readonly signal: AbortSignal;
}

/** Returns messages of a conversation or a thread, the newest first. */
export async function fetchMessages(
  { client, people, self }: FetchDeps,
  { conversationId, threadId }: Place,
  { limit, before, signal }: FetchQuery,
): Promise<Act<readonly FetchedMessage[]>> {
  if (before !== undefined && !/^\d{1,12}\.\d{6}$/.test(before)) return { is: 'failed', kind: 'invalid', text: 'Not the id of a message of Slack' };
  const isThread = threadId !== undefined;
  let found: PageMessage[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < mostPages; pages += 1) {
    const query = { latest: before, limit: isThread ? largestPage : Math.min(limit, largestPage), cursor };
    const page = await readPage(client, { channel: conversationId, threadTs: threadId }, query, signal);
    if (page.is !== 'ok') return failureOf(page);
    found = [...found, ...page.messages].slice(isThread ? -(limit + 1) : 0);
    cursor = page.next;
    if (cursor === undefined || (!isThread && found.length >= limit)) break;
  }
  const messages = found
    .map(({ message }) => message)
    .filter(({ ts }) => ts !== before)
    .toSorted((a, b) => Number(b.ts) - Number(a.ts))
    .slice(0, limit);
  await people.learn(messages.flatMap(peopleOf), signal);
  const value = messages.map((message) => ({
    messageId: message.ts,
    senderId: senderOf(message, self),
    text: plainTextOf(message, people),
    sentAtMs: msOf(message.ts),
  }));
  return { is: 'done', value };
}

function senderOf(message: PageMessage['message'], self: Identity | undefined): string {
  const account = message.user ?? message.bot_id ?? '';
  return self === undefined ? account : senderIdOf(account, workspaceOf(message), self);
}
