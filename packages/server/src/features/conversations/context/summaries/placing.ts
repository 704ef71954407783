import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { cutMiddle } from '../../../../runtime/bound-text.ts';
import type { Fence } from '../../../../runtime/fence.ts';
import { shares } from './cut.ts';
import { renderPrefix, truncate } from './render.ts';
import { type CountedRow, coveredBy, moveCut, readRoots, type SummaryNode, taintOf } from '../store.ts';
import type { Seen } from './see.ts';
import { leafOf } from './summarise.ts';

/** Maximum attempts when the tree is changed concurrently. */
const maxAttempts = 3;

export type Placing = ReturnType<typeof createPlacing>;

/** Maintains the prefix before the messages in the window. Never waits for a model. */
export function createPlacing({ db, clock, fence }: { readonly db: Db; readonly clock: Clock; readonly fence: Fence }) {
  return {
    /**
     * Moves the cut to the position that `choose` returns for the last summarised message, and rebuilds the prefix from
     * summaries, and from heads and tails of messages without one. If the cut does not move, the prefix stays the same
     * unless `renew` is set.
     */
    async move(
      seen: Seen,
      choose: (covered: number) => number,
      { ref, capacity, renew }: { readonly ref: string; readonly capacity: number; readonly renew: boolean },
    ): Promise<Seen> {
      const { conversationId, floor } = seen;
      for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
        const roots = await db.read(readRoots, { conversationId });
        const covered = coveredBy(roots, floor);
        const cutSeq = Math.max(seen.cutSeq, choose(covered));
        if (cutSeq === seen.cutSeq && !renew) return seen;
        const notes = roots.filter((node) => node.stopgap === 0 && node.toSeq <= cutSeq);
        const to = coveredBy(notes, floor);
        const former = roots.find((node) => node.stopgap === 1 && node.toSeq <= cutSeq);
        const stopgap = to < cutSeq ? stopgapOf(seen.rows, { from: to + 1, to: cutSeq }, former, capacity * shares.notes * 0.5, clock.now()) : null;
        const nodes = stopgap === null ? notes : [...notes, stopgap];
        const { prefix, prefixTokens } = renderPrefix(nodes, Math.floor(capacity * shares.notes), fence, !seen.tainted);
        const from = { cutSeq: seen.cutSeq, floor, covered };
        const moved = await db.write(moveCut, { ref, from, cutSeq, prefix, prefixTokens, stopgap, atMs: clock.now() });
        if (moved) {
          const rows = seen.rows.filter((row) => row.seq > cutSeq);
          return { ...seen, cutSeq, prefix, prefixTokens, behind: stopgap !== null, rows, whole: true };
        }
      }
      // The conversation keeps changing: this time, send the model everything from the first whole exchange.
      const first = seen.rows.findIndex((row) => row.role === 'user');
      return { ...seen, rows: first === -1 ? [] : seen.rows.slice(first) };
    },
  };
}

/** Returns a stopgap for messages without a summary, reusing the text of an earlier stopgap. */
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
