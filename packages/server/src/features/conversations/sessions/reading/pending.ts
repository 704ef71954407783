import type { Clock } from '../../../../kernel/clock.ts';
import type { ConversationTarget } from '../api.ts';
import { type ConversationRow, kindOf, type Reach, sourceOf, within } from '../store.ts';

/**
 * Conversations with a running or queued turn. During its first turn a conversation has no row yet but already exists: it
 * is listed, and reset, delete and messages reach it (decisions §12). Kept in memory, because a turn bound to a request
 * ends with its process.
 */
export class PendingConversations {
  readonly #clock: Clock;
  readonly #entered = new Map<string, { readonly target: ConversationTarget; readonly sinceMs: number; turns: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Registers a turn of a kept conversation when it is accepted; call the result when the turn has ended. */
  enter(target: ConversationTarget): () => void {
    let entry = this.#entered.get(target.ref);
    if (entry === undefined) this.#entered.set(target.ref, (entry = { target, sinceMs: this.#clock.now(), turns: 0 }));
    const joined = entry;
    joined.turns += 1;
    return () => {
      joined.turns -= 1;
      if (joined.turns === 0) this.#entered.delete(target.ref);
    };
  }

  has(ref: string): boolean {
    return this.#entered.has(ref);
  }

  /** Returns the conversation of a reference as its row would be before the first message. */
  find(ref: string, reach: Reach): ConversationRow | undefined {
    const entry = this.#entered.get(ref);
    if (entry === undefined) return undefined;
    const row = emptyRow(entry.target, entry.sinceMs);
    return within(row, reach) ? row : undefined;
  }

  /** Returns all within reach, newest first, whether they have a row or not. */
  list(reach: Reach): ConversationRow[] {
    const rows = [...this.#entered.values()].map(({ target, sinceMs }) => emptyRow(target, sinceMs));
    return rows.filter((row) => within(row, reach)).toReversed();
  }
}

function emptyRow({ ref, agentId, principalId, sessionKey }: ConversationTarget, sinceMs: number): ConversationRow {
  return {
    id: 0,
    ref,
    agentId,
    principalId,
    kind: kindOf(sessionKey),
    sessionKey,
    lastSeq: 0,
    messageCount: 0,
    turnCount: 0,
    stepCount: 0,
    toolCallCount: 0,
    inputTokens: 0,
    outputTokens: 0,
    costNano: 0,
    createdAtMs: sinceMs,
    updatedAtMs: sinceMs,
    title: null,
    forkedFrom: null,
    resetCount: 0,
    compactionCount: 0,
    modelSeqFloor: 0,
    taint: 0,
    synthetic: 0,
    name: null,
    shelf: 'list',
    tags: '',
    source: sourceOf(sessionKey),
  };
}
