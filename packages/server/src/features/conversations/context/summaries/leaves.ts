import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Log } from '../../../../kernel/log.ts';
import { cutMiddle } from '../../../../runtime/bound-text.ts';
import { leafTokens, shares, summaryTokens } from './cut.ts';
import { addCondensed, addLeaf, coveredBy, type Head, readChunk, readRoots, type SummaryNode } from '../store.ts';
import { condensedOf, createSummariser, leafOf, type SummariserDeps, type Summary, type SummaryOrder } from './summarise.ts';

export interface LeavesDeps extends SummariserDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
}

/** Remaining model calls of one background item, and the nodes it has created. */
export interface Allowance {
  calls: number;
  made: number;
}

/** Number of notes of one depth condensed into one. */
const family = 4;
/** Number of newer notes of a depth kept while they fit. */
const spared = 2;
/** Failures for the same messages after which their heads and tails permanently replace a summary. */
const patience = 3;
const firstPauseMs = 30_000;
const rememberedFailures = 1000;

interface Failures {
  readonly fromSeq: number;
  readonly count: number;
  readonly notBeforeMs: number;
}

export type Leaves = ReturnType<typeof createLeaves>;

/** Builds the tree of notes of a conversation: leaves over its messages in order, and condensed notes over those. */
export function createLeaves(deps: LeavesDeps) {
  const { db, clock, log } = deps;
  const summarise = createSummariser(deps);
  const failures = new Map<string, Failures>();

  /** Returns the summary, or its replacement after repeated failures; throws when it should be retried later. */
  async function attempt(order: SummaryOrder, fromSeq: number, make: () => Promise<Summary>, instead: () => string): Promise<Summary> {
    const before = failures.get(order.ref);
    const failed = before?.fromSeq === fromSeq ? before : undefined;
    if (failed !== undefined && failed.notBeforeMs > clock.now() && !order.asked) throw new AppError('unavailable', 'A summary failed recently');
    try {
      const summary = await make();
      failures.delete(order.ref);
      return summary;
    } catch (error) {
      // A requested summary reports its failure to the caller, who may retry.
      if (order.signal.aborted || order.asked) throw error;
      const count = (failed?.count ?? 0) + 1;
      failures.delete(order.ref);
      log.warn({ conversationRef: order.ref, agentId: order.agentId, error, count }, 'Failed to summarise a conversation');
      if (count >= patience) return { content: instead(), model: 'truncation' };
      if (failures.size >= rememberedFailures) failures.delete(failures.keys().next().value ?? '');
      failures.set(order.ref, { fromSeq, count, notBeforeMs: clock.now() + firstPauseMs * 2 ** (count - 1) });
      throw error;
    }
  }

  return {
    /** Adds leaves up to the message `to`. Returns false when the allowance or the conversation ends before; throws when the model fails. */
    async extend(head: Head, to: number, order: SummaryOrder, allowance: Allowance): Promise<boolean> {
      const { conversationId, floor } = head;
      let covered = coveredBy(await db.read(readRoots, { conversationId }), floor);
      while (covered < to) {
        if (allowance.calls <= 0 || order.signal.aborted) return false;
        allowance.calls -= 1;
        const tokens = leafTokens(order.capacity);
        const limits = { tokens, transcriptTokens: Math.ceil(tokens * 1.25), insteadTokens: summaryTokens(order.capacity) };
        const chunk = await db.read(readChunk, { conversationId, from: covered + 1, to, ...limits });
        if (chunk === undefined) return false;
        const { fromSeq, toSeq, turnId, taint, transcript, instead } = chunk;
        const { content, model } = await attempt(
          order,
          fromSeq,
          () => summarise.ofMessages(transcript, order),
          () => instead,
        );
        const node = leafOf({ fromSeq, toSeq, content, model, taint, stopgap: 0, createdAtMs: clock.now() });
        if (!(await db.write(addLeaf, { basis: { ref: order.ref, floor, toSeq, turnId }, node }))) return false;
        allowance.made += 1;
        covered = toSeq;
      }
      return true;
    },

    /** Condenses the oldest notes before the cut while there are many of one depth, or more than fit the prefix. */
    async condense(head: Head, cutSeq: number, order: SummaryOrder, allowance: Allowance): Promise<void> {
      const { conversationId } = head;
      while (allowance.calls > 0 && !order.signal.aborted) {
        const roots = await db.read(readRoots, { conversationId });
        const children = chooseFamily(
          roots.filter((node) => node.stopgap === 0 && node.toSeq <= cutSeq),
          order.capacity * shares.notes,
        );
        const [first] = children;
        if (first === undefined) return;
        allowance.calls -= 1;
        const share = Math.floor((summaryTokens(order.capacity) * 4) / children.length);
        const summary = await attempt(
          order,
          first.fromSeq,
          () => summarise.ofNotes(children, order),
          () => children.map((child) => cutMiddle(child.content, share)).join('\n\n'),
        );
        const node = condensedOf(children, summary, clock.now());
        if (!(await db.write(addCondensed, { conversationId, node, childIds: children.map((child) => child.id) }))) return;
        allowance.made += 1;
      }
    },
  };
}

/** Returns the oldest notes of the lowest depth with too many; empty when none needs condensing. */
function chooseFamily(nodes: readonly SummaryNode[], tokens: number): readonly SummaryNode[] {
  const crowded = nodes.reduce((sum, node) => sum + node.tokenCount, 0) > tokens;
  for (const depth of [...new Set(nodes.map((node) => node.depth))].toSorted((a, b) => a - b)) {
    const same = nodes.filter((node) => node.depth === depth);
    if (same.length >= family + spared || (crowded && same.length >= family)) return same.slice(0, family);
  }
  return [];
}
