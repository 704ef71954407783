import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { Log } from '../../../../kernel/log.ts';
import { saveStats, type StatRow } from '../store.ts';

/** Consecutive turns that ended well, or badly, before a skill rises or falls; fewer bring it back to the middle. */
const risesAfter = 5;
const fallsAfter = 3;
const recoversAfter = 2;
/** How long changes are collected: a turn never pays for a write. */
const waitMs = 5_000;

export type Outcome = 'ok' | 'failed';
type Key = Pick<StatRow, 'agentId' | 'owner' | 'name'>;

/** How well each skill serves each agent. Read from memory, written in batches. */
export interface Standing extends AsyncDisposable {
  of(key: Key): StatRow | undefined;
  record(key: Key, outcome: Outcome): void;
  /** Call after a skill was written or deleted: its record was about another text. */
  forget(owner: string, name: string): void;
  /** Grows when a standing changes. */
  version(): number;
}

const nameOf = ({ agentId, owner, name }: Key) => `${agentId}\0${owner}\0${name}`;

export function createStanding(
  { db, bus, clock, log }: { readonly db: Db; readonly bus: EventBus; readonly clock: Clock; readonly log: Log },
  stored: readonly StatRow[],
): Standing {
  const rows = new Map(stored.map((row) => [nameOf(row), row]));
  let waiting = new Map<string, { readonly row: StatRow; readonly moved: StatRow['standing'] | undefined }>();
  let cancel: (() => void) | undefined;
  let writing: Promise<void> = Promise.resolve();
  let version = 0;

  function flush(): Promise<void> {
    cancel?.();
    cancel = undefined;
    const changes = [...waiting.values()];
    waiting = new Map();
    if (changes.length === 0) return writing;
    return (writing = writing.then(() => write(changes)));
  }

  async function write(changes: readonly { readonly row: StatRow; readonly moved: StatRow['standing'] | undefined }[]): Promise<void> {
    try {
      await db.write(saveStats, { stats: changes.map(({ row }) => row) });
    } catch (error) {
      log.warn({ err: error, skills: changes.length }, 'Failed to count uses of skills');
      return;
    }
    for (const agentId of new Set(changes.map(({ row }) => row.agentId))) {
      const count = (moved: StatRow['standing']) => changes.filter((change) => change.row.agentId === agentId && change.moved === moved).length;
      const timestamp = clock.now();
      const [promoted, demoted] = [count('promoted'), count('demoted')];
      if (promoted > 0) bus.emit('learning:skill_promoted', { agentId, count: promoted, timestamp });
      if (demoted > 0) bus.emit('learning:skill_demoted', { agentId, count: demoted, timestamp });
    }
  }

  return {
    of: (key) => rows.get(nameOf(key)),
    record(key, outcome) {
      const id = nameOf(key);
      const before = rows.get(id) ?? { ...key, uses: 0, failures: 0, streak: 0, standing: 'neutral' as const, atMs: 0 };
      const streak = outcome === 'ok' ? Math.max(0, before.streak) + 1 : Math.min(0, before.streak) - 1;
      const standing = standingAfter(before.standing, streak);
      const row: StatRow = {
        ...before,
        uses: before.uses + 1,
        failures: before.failures + (outcome === 'ok' ? 0 : 1),
        streak,
        standing,
        atMs: clock.now(),
      };
      rows.set(id, row);
      const moved = standing === before.standing ? waiting.get(id)?.moved : standing;
      if (standing !== before.standing) version += 1;
      waiting.set(id, { row, moved });
      cancel ??= clock.after(waitMs, () => void flush());
    },
    forget(owner, name) {
      for (const [id, row] of rows) {
        if (row.owner !== owner || row.name !== name) continue;
        rows.delete(id);
        waiting.delete(id);
      }
      version += 1;
    },
    version: () => version,
    [Symbol.asyncDispose]: flush,
  };
}

function standingAfter(before: StatRow['standing'], streak: number): StatRow['standing'] {
  if (streak >= risesAfter) return 'promoted';
  if (streak <= -fallsAfter) return 'demoted';
  if (before === 'demoted' && streak >= recoversAfter) return 'neutral';
  if (before === 'promoted' && streak <= -recoversAfter) return 'neutral';
  return before;
}
