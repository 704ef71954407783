import type { Log } from '../../../../kernel/log.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import type { Compact } from '../../sessions/api.ts';
import type { CatchUpDeps } from './catch-up.ts';
import { sumTokens, tailBegin } from './cut.ts';
import { see } from './see.ts';

export interface CompactDeps extends CatchUpDeps {
  readonly log: Log;
  /** Returns the tokens available to history in a call of an agent. */
  readonly capacityOf: (agent: Agent) => number;
  /** Stops background summaries of a conversation. */
  readonly stopBackground: (ref: string) => Promise<void>;
}

/** Maximum model calls for one `session.compact`. */
const callsPerCompaction = 64;
/** Minimum tokens worth compacting. */
const minCompacted = 200;
/** Newest exchanges kept by a compaction on demand, within this share of the capacity. */
const sparedExchanges = 2;
const sparedShare = 0.25;

/** Compacts a conversation on demand. */
export function createCompact(deps: CompactDeps): Compact {
  const { db, log, leaves, placing } = deps;
  return async ({ ref, agent, principalId, instructions, signal }) => {
    await deps.stopBackground(ref);
    const capacity = deps.capacityOf(agent);
    const seen = await see(db, ref, capacity);
    if (seen === undefined) return { messageCount: 0, tokensBefore: 0, tokensAfter: 0, summaries: 0, method: 'none' };
    const tokensBefore = seen.prefixTokens + sumTokens(seen.rows);
    const begins = seen.rows.filter((row) => row.role === 'user').map((row) => row.seq);
    const cutSeq = Math.max(tailBegin(seen.rows, capacity, sparedShare), begins.at(-sparedExchanges) ?? begins[0] ?? 0) - 1;
    const outside = sumTokens(seen.rows.filter((row) => row.seq <= cutSeq));
    if (outside < minCompacted && !seen.behind)
      return { messageCount: seen.lastSeq, tokensBefore, tokensAfter: tokensBefore, summaries: 0, method: 'none' };
    const order = { ref, agentId: agent.id, principalId, capacity, asked: true, instructions, signal };
    const allowance = { calls: callsPerCompaction, made: 0 };
    const whole = await leaves
      .extend(seen, cutSeq, order, allowance)
      .then(async (done) => {
        await leaves.condense(seen, cutSeq, order, allowance);
        return done;
      })
      .catch((error: unknown) => {
        signal.throwIfAborted();
        log.warn({ conversationRef: ref, error }, 'Compacting without a summary');
        return false;
      });
    const placed = await placing.move(seen, () => cutSeq, { ref, capacity, renew: true });
    await db.write(deps.countCompaction, { ref });
    return {
      messageCount: seen.lastSeq,
      tokensBefore,
      tokensAfter: placed.prefixTokens + sumTokens(placed.rows),
      summaries: allowance.made,
      method: whole && !placed.behind ? 'summary' : 'truncated',
    };
  };
}
