/** Data about one memory for the lifecycle; times are milliseconds since the epoch. */
export interface LifeRow {
  readonly id: string;
  readonly memoryType: 'working' | 'episodic' | 'semantic' | 'procedural';
  readonly trustLevel: 'system' | 'learned' | 'external';
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  readonly lastUsedAtMs: number | null;
  readonly useCount: number;
  readonly failureCount: number;
  /** 0 for a raw entry, otherwise how many entries an observation rests on. */
  readonly proofCount: number;
  readonly confidence: number | null;
  readonly consolidatedAtMs: number | null;
  readonly demotedAtMs: number | null;
  readonly pinned: boolean;
  /** Stored by an operator: it does not fade on its own. */
  readonly explicit: boolean;
}

export interface LifeLimits {
  readonly maxEntries?: number | undefined;
  readonly maxAgeDays?: number | undefined;
}

export type LifeAction =
  | { readonly kind: 'promote'; readonly id: string; readonly to: 'episodic' | 'semantic'; readonly reason: 'used' }
  | { readonly kind: 'demote'; readonly id: string; readonly reason: 'faded' | 'failures' }
  | { readonly kind: 'evict'; readonly id: string; readonly reason: 'expired' | 'too_old' | 'faded' | 'too_many' };

const dayMs = 86_400_000;
/** Days after which an unused entry is half as strong. */
const halfLifeDays = { working: 7, episodic: 30, semantic: 180, procedural: 180 } as const;
const faded = 0.1;
/** How long a demoted entry waits for a use before it is evicted. */
const graceDays = 30;
const usesForEpisodic = 3;
const usesForSemantic = 10;
const failuresForDemotion = 3;
/** Confidence of an entry that turns failed with; recall excludes entries that are not above it. */
export const doubtedConfidence = 0.2;
/** Actions of one plan; the rest is left to the next. */
const maxActions = 10_000;
/** Limit of those for the number of entries: sorting them blocks the thread. */
const maxOverflow = 2_000;

/** Strength of a memory: falls with the time since its last use, grows with its uses and proofs, suffers from failures. */
export function strengthOf(row: LifeRow, nowMs: number): number {
  const touchedMs = Math.max(row.createdAtMs, row.lastUsedAtMs ?? 0);
  const ageDays = Math.max(0, nowMs - touchedMs) / dayMs;
  const worth = (1 + Math.log2(1 + row.useCount) + Math.log2(1 + row.proofCount)) * (row.confidence ?? 1);
  const folded = row.consolidatedAtMs === null ? 1 : 0.5;
  return (worth * folded * 0.5 ** (ageDays / halfLifeDays[row.memoryType])) / (1 + row.failureCount);
}

const isProtected = (row: LifeRow) => row.pinned || row.trustLevel === 'system';

/** Returns the action due for one entry; none for pinned or system entries. */
function judge(row: LifeRow, nowMs: number, limits: LifeLimits): LifeAction | undefined {
  const { id } = row;
  if (isProtected(row)) return undefined;
  if (row.expiresAtMs !== null && row.expiresAtMs <= nowMs) return { kind: 'evict', id, reason: 'expired' };
  if (limits.maxAgeDays !== undefined && row.createdAtMs <= nowMs - limits.maxAgeDays * dayMs) return { kind: 'evict', id, reason: 'too_old' };
  const doubted = row.failureCount >= failuresForDemotion && row.failureCount * 2 >= row.useCount;
  if (row.demotedAtMs !== null) return judgeDemoted(row, row.demotedAtMs, nowMs, doubted);
  if (doubted) return { kind: 'demote', id, reason: 'failures' };
  const promotion = promotionOf(row);
  if (promotion !== undefined) return { kind: 'promote', id, to: promotion, reason: 'used' };
  if (row.explicit || strengthOf(row, nowMs) >= faded) return undefined;
  return row.memoryType === 'working' ? { kind: 'evict', id, reason: 'faded' } : { kind: 'demote', id, reason: 'faded' };
}

/** Restores a demoted entry that was used again, unless turns failed with it; evicts one that waited in vain. */
function judgeDemoted(row: LifeRow, demotedAtMs: number, nowMs: number, doubted: boolean): LifeAction | undefined {
  const { id } = row;
  const isUsedAgain = row.lastUsedAtMs !== null && row.lastUsedAtMs > demotedAtMs;
  if (isUsedAgain && !doubted && row.trustLevel !== 'external')
    return { kind: 'promote', id, to: row.useCount >= usesForSemantic ? 'semantic' : 'episodic', reason: 'used' };
  const waitedSinceMs = isUsedAgain ? (row.lastUsedAtMs ?? demotedAtMs) : demotedAtMs;
  return waitedSinceMs <= nowMs - graceDays * dayMs ? { kind: 'evict', id, reason: 'faded' } : undefined;
}

/** Promotes only used entries, and nothing from outside automatically. */
function promotionOf(row: LifeRow): 'episodic' | 'semantic' | undefined {
  if (row.trustLevel === 'external') return undefined;
  if (row.memoryType !== 'working' && row.memoryType !== 'episodic') return undefined;
  if (row.useCount >= usesForSemantic) return 'semantic';
  return row.memoryType === 'working' && row.useCount >= usesForEpisodic ? 'episodic' : undefined;
}

export interface LifePlan {
  readonly examined: number;
  readonly actions: readonly LifeAction[];
  /** Whether there is more to do than one plan takes. */
  readonly more: boolean;
}

/** Plans for the entries of one agent page by page, so that no page blocks the thread for long; `end` returns the plan. */
export function beginPlan(nowMs: number, limits: LifeLimits) {
  const actions: LifeAction[] = [];
  let weakest: { readonly row: LifeRow; readonly strength: number }[] = [];
  let examined = 0;
  let left = 0;
  let more = false;

  const byWeakness = (a: (typeof weakest)[number], b: (typeof weakest)[number]) =>
    Number(a.row.explicit) - Number(b.row.explicit) || a.strength - b.strength || (a.row.id < b.row.id ? -1 : 1);

  function add(rows: readonly LifeRow[]): void {
    for (const row of rows) {
      examined += 1;
      const action = judge(row, nowMs, limits);
      if (action !== undefined) {
        if (actions.length < maxActions) actions.push(action);
        else more = true;
      }
      if (action?.kind === 'evict') continue;
      left += 1;
      if (limits.maxEntries !== undefined && !isProtected(row)) weakest.push({ row, strength: strengthOf(row, nowMs) });
    }
    // The strongest of those seen cannot be among the first to be evicted.
    if (weakest.length > maxOverflow * 2) weakest = weakest.toSorted(byWeakness).slice(0, maxOverflow);
  }

  function end(): LifePlan {
    const excess = limits.maxEntries === undefined ? 0 : Math.max(0, left - limits.maxEntries);
    if (excess === 0) return { examined, actions, more };
    const going = weakest.toSorted(byWeakness).slice(0, Math.min(excess, maxOverflow));
    const ids = new Set(going.map(({ row }) => row.id));
    const evictions = going.map(({ row }): LifeAction => ({ kind: 'evict', id: row.id, reason: 'too_many' }));
    const planned = [...actions.filter(({ id }) => !ids.has(id)), ...evictions];
    // A limit that only pinned entries exceed cannot be met, and must not be retried for ever.
    return {
      examined,
      actions: planned.slice(0, maxActions),
      more: more || planned.length > maxActions || (excess > going.length && going.length === maxOverflow),
    };
  }

  return { add, end };
}

/** The same for a complete list. */
export function planLifecycle(rows: readonly LifeRow[], nowMs: number, limits: LifeLimits): LifePlan {
  const plan = beginPlan(nowMs, limits);
  plan.add(rows);
  return plan.end();
}
