import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import { coveredBy, readRoots } from '../store.ts';
import { shares, sumTokens, tailBegin } from './cut.ts';
import type { Allowance, Leaves } from './leaves.ts';
import type { Placing } from './placing.ts';
import { see } from './see.ts';
import type { SummaryOrder } from './summarise.ts';

export interface CatchUpDeps {
  readonly db: Db;
  readonly leaves: Leaves;
  readonly placing: Placing;
  /** Counts a compaction of a conversation. */
  readonly countCompaction: Operation<{ readonly ref: string }, void>;
}

/** Maximum model calls after one turn. */
const callsPerTurn = 8;

/** Summarises in the background. Counts as one compaction whatever it adds, even when it is interrupted. */
export function createCatchUp({ db, leaves, placing, countCompaction }: CatchUpDeps): (order: SummaryOrder) => Promise<void> {
  /** Summarises messages before the cut, then those that will be next. */
  async function summariseBehind(order: SummaryOrder, allowance: Allowance): Promise<void> {
    const { ref, capacity } = order;
    const seen = await see(db, ref, capacity);
    if (seen === undefined) return;
    // Condense first, so that notes stay few while a long history is being caught up.
    await leaves.condense(seen, seen.cutSeq, order, allowance);
    if (!(await leaves.extend(seen, seen.cutSeq, order, allowance))) return;
    await leaves.condense(seen, seen.cutSeq, order, allowance);
    if (seen.behind) await placing.move(seen, () => seen.cutSeq, { ref, capacity, renew: true });
    const to = tailBegin(seen.rows, capacity, shares.tail) - 1;
    const covered = coveredBy(await db.read(readRoots, seen), seen.floor);
    const outside = sumTokens(seen.rows.filter((row) => row.seq > covered && row.seq <= to));
    if (outside >= capacity * shares.leastLeaf) await leaves.extend(seen, to, order, allowance);
  }

  return async (order) => {
    const allowance = { calls: callsPerTurn, made: 0 };
    try {
      await summariseBehind(order, allowance);
    } finally {
      if (allowance.made > 0) await db.write(countCompaction, { ref: order.ref });
    }
  };
}
