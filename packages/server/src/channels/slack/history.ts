import * as z from 'zod';
import type { NotOk, SlackClient } from './client.ts';
import { SlackMessage } from './message.ts';
import type { Spot } from './tracker.ts';

const Page = z.object({
  messages: z.array(z.unknown()),
  has_more: z.boolean().nullish(),
  response_metadata: z.object({ next_cursor: z.string().nullish() }).nullish(),
});

/** A message of a page as it came, for what only some callers read. */
export interface PageMessage {
  readonly message: SlackMessage;
  readonly raw: unknown;
}

export type PageResult =
  | { readonly is: 'ok'; readonly messages: readonly PageMessage[]; /** Undefined on the last page. */ readonly next: string | undefined }
  | NotOk;

export interface PageQuery {
  readonly oldest?: string | undefined;
  readonly latest?: string | undefined;
  readonly limit: number;
  readonly withMetadata?: boolean;
  readonly cursor?: string | undefined;
}

/** Reads a page of a conversation, which begins with the newest message, or of a thread, which begins with the oldest. */
export async function readPage(
  client: SlackClient,
  { channel, threadTs }: Spot,
  { oldest, latest, limit, withMetadata = false, cursor }: PageQuery,
  signal: AbortSignal,
): Promise<PageResult> {
  const answer = await client.call(
    threadTs === undefined ? 'conversations.history' : 'conversations.replies',
    {
      channel,
      ...(threadTs !== undefined && { ts: threadTs }),
      limit,
      ...(oldest !== undefined && { oldest }),
      ...(latest !== undefined && { latest }),
      ...(cursor !== undefined && { cursor }),
      ...(withMetadata && { include_all_metadata: true }),
    },
    signal,
  );
  if (answer.is !== 'ok') return answer;
  const page = Page.safeParse(answer.data);
  if (!page.success) return { is: 'failed', text: 'The answer is not a page of messages', maybeSent: true };
  const messages = page.data.messages.flatMap((raw) => {
    const parsed = SlackMessage.safeParse(raw);
    return parsed.success ? [{ message: parsed.data, raw }] : [];
  });
  const next = page.data.response_metadata?.next_cursor;
  return { is: 'ok', messages, next: page.data.has_more === true && next != null && next !== '' ? next : undefined };
}
