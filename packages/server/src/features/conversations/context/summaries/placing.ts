import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { cutMiddle } from '../../../../runtime/bound-text.ts';
import type { Fence } from '../../../../runtime/fence.ts';
import { shares } from './cut.ts';
import { renderPrefix, truncate } from './render.ts';
import { type CountedRow, coveredBy, type Head, moveCut, readRoots, type SummaryNode, taintOf } from '../store.ts';
import { leafOf } from './summarise.ts';

/** What was read of a conversation: the messages after the cut, all of them when `whole`. */
export interface Seen extends Head {
  readonly rows: readonly CountedRow[];
  readonly whole: boolean;
}

/** Others may change the tree meanwhile; more often than that in a row is not to be expected. */
const mostAttempts = 3;

/** Decides what stands before the messages in the window. Nothing here waits for a model. */
export function createPlacing({ db, clock, fence }: { readonly db: Db; readonly clock: Clock; readonly fence: Fence }) {
  return {
    /**
     * Moves the cut to where `choose` puts it, given the last message that has a summary, and makes the prefix anew:
     * from the summaries, and from heads and tails of the messages where there is none yet. A prefix whose cut stays
     * where it is stays as it is too, unless it is to be renewed.
     */
    async move(
      seen: Seen,
      choose: (covered: number) => number,
      { ref, room, renew }: { readonly ref: string; readonly room: number; readonly renew: boolean },
    ): Promise<Seen> {
      const { conversationId, floor } = seen;
      for (let attempt = 0; attempt < mostAttempts; attempt += 1) {
        const roots = await db.read(readRoots, { conversationId });
        const covered = coveredBy(roots, floor);
        const cutSeq = Math.max(seen.cutSeq, choose(covered));
        if (cutSeq === seen.cutSeq && !renew) return seen;
        const notes = roots.filter((node) => node.stopgap === 0 && node.toSeq <= cutSeq);
        const to = coveredBy(notes, floor);
        const former = roots.find((node) => node.stopgap === 1 && node.toSeq <= cutSeq);
        const stopgap = to < cutSeq ? stopgapOf(seen.rows, { from: to + 1, to: cutSeq }, former, room * shares.notes * 0.5, clock.now()) : null;
        const nodes = stopgap === null ? notes : [...notes, stopgap];
        const { prefix, prefixTokens } = renderPrefix(nodes, Math.floor(room * shares.notes), fence, !seen.tainted);
        const from = { cutSeq: seen.cutSeq, floor, covered };
        const moved = await db.write(moveCut, { ref, from, cutSeq, prefix, prefixTokens, stopgap, atMs: clock.now() });
        if (moved) {
          const rows = seen.rows.filter((row) => row.seq > cutSeq);
          return { ...seen, cutSeq, prefix, prefixTokens, behind: stopgap !== null, rows, whole: true };
        }
      }
      // The conversation changes under our hands: this time the model is sent what there is from the first whole exchange on.
      const first = seen.rows.findIndex((row) => row.role === 'user');
      return { ...seen, rows: first === -1 ? [] : seen.rows.slice(first) };
    },
  };
}

/** What can be said at once of messages without a summary; of those that an earlier stopgap stands for, what that said. */
function stopgapOf(
  rows: readonly CountedRow[],
  range: { readonly from: number; readonly to: number },
  former: SummaryNode | undefined,
  tokens: number,
  createdAtMs: number,
): SummaryNode {
  const since = former !== undefined && former.toSeq >= range.from ? former : undefined;
  const from = since === undefined ? range.from : since.toSeq + 1;
  const covered = rows.filter((row) => row.seq >= from && row.seq <= range.to);
  const texts = [
    ...(since === undefined ? [] : [cutMiddle(since.content, Math.floor(tokens * 2))]),
    ...(from > range.to ? [] : [truncate(covered, { from, to: range.to }, Math.floor(since === undefined ? tokens : tokens / 2))]),
  ];
  const taint = since?.taint === 'wrapped' ? 'wrapped' : taintOf(covered);
  return leafOf({ fromSeq: range.from, toSeq: range.to, content: texts.join('\n\n'), model: 'truncation', taint, stopgap: 1, createdAtMs });
}
