import { query, type Tx } from '../../../kernel/db/operation.ts';
import type { MessageRow } from '../sessions/api.ts';

/** Reads rows by position: `seq` has no gaps, so a page is a range of the index. */
const messagePage = query<{ conversationId: number; from: number; to: number }, MessageRow>(({ db, p }) =>
  db
    .selectFrom('message')
    .select(['seq', 'turnId', 'role', 'content', 'toolJson', 'attachmentsJson', 'createdAtMs'])
    .where('conversationId', '=', p('conversationId'))
    .where('seq', '>=', p('from'))
    .where('seq', '<', p('to'))
    .orderBy('seq'),
);

/** Size of the first page read backward; later sizes are estimated from the remaining bytes. */
const firstPage = 64;
const longestPage = 1000;

/** Returns the newest messages of a conversation down to `from`, oldest first, until they have slightly more than `bytes`. */
export async function readBackward(
  tx: Tx,
  { conversationId, from, to, bytes }: { readonly conversationId: number; readonly from: number; readonly to: number; readonly bytes: number },
): Promise<MessageRow[]> {
  const rows: MessageRow[] = [];
  let left = bytes;
  let length = firstPage;
  for (let end = to; end >= from && left > 0; end -= length) {
    if (rows.length > 0) length = Math.min(longestPage, Math.max(firstPage, Math.ceil((left * rows.length) / (bytes - left + 1))));
    const page = await tx.all(messagePage, { conversationId, from: Math.max(from, end - length + 1), to: end + 1 });
    for (let index = page.length - 1; index >= 0 && left > 0; index -= 1) {
      const row = page[index];
      if (row === undefined) continue;
      rows.push(row);
      left -= row.content.length + (row.toolJson?.length ?? 0) + rowBytes;
    }
  }
  return rows.reverse();
}

/** Size of a row in addition to its texts, so that many empty rows also reach the limit. */
const rowBytes = 32;

/** Returns at most `limit` rows from `from` to `to`, oldest first. */
export async function readForward(
  tx: Tx,
  { conversationId, from, to, limit }: { readonly conversationId: number; readonly from: number; readonly to: number; readonly limit: number },
): Promise<MessageRow[]> {
  return tx.all(messagePage, { conversationId, from, to: Math.min(to, from + limit - 1) + 1 });
}
