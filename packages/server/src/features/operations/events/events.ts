import { type EventKind, eventKinds, events as declared } from '@gatehouse/contract';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { BusEvent, EventBus } from '../../../kernel/event-bus.ts';
import type { Log } from '../../../kernel/log.ts';
import type { EventPage, EventsApi, LoggedEvent } from './api.ts';
import { decodeEntries, endOf, isGap, isKnown, type KeptEvent, type LogEntry } from './batch.ts';
import { Recorder, type RecorderLimits, recorderLimits } from './recorder.ts';
import { EventRing, type RingBounds } from './ring.ts';
import { batchesAfter, batchesBefore, digestEvents } from './store.ts';
import { digestFor, viewOf } from './visibility.ts';

export interface EventLimits extends RecorderLimits {
  /** Limits of the events in memory. */
  readonly ring: RingBounds;
}

export interface EventsDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits?: EventLimits;
}

export interface Events extends AsyncDisposable {
  readonly api: EventsApi;
}

// Unwritten events are part of those in memory, also at three bytes a character; large answers of /v1 may push out others, as they wait without their payloads.
export const eventLimits: EventLimits = { ...recorderLimits, ring: { maxCount: 4_096, maxBytes: 6 * 1024 * 1024 } };

const pageBytes = 256 * 1024;
const keptKinds = eventKinds.filter((kind) => declared[kind].transient !== true);

/** Listens to the bus from the start on: numbers events, keeps them in memory and in the telemetry file, and delivers them. */
export async function createEvents(deps: EventsDeps): Promise<Events> {
  const { db, bus, clock, limits = eventLimits } = deps;
  const recorder = await Recorder.open({ ...deps, limits });
  const ring = new EventRing(recorder.startId, limits.ring);
  const followers = new Set<(event: LoggedEvent) => void>();
  /** Transient kinds that are currently produced. */
  const needs = new Map<EventKind, { by: number; readonly stop: () => void }>();
  let lastId = recorder.startId;

  function deliver(event: LoggedEvent): void {
    for (const hear of followers) hear(event);
  }

  const stop = bus.listen(keptKinds, (event) => {
    const kept = logged(event, clock.now(), (lastId += 1));
    ring.push(kept);
    // Conversations of /v1 are not kept, so no file contains their text.
    recorder.push('origin' in event.payload && event.payload.origin === 'v1' ? { ...kept, json: undefined } : kept);
    deliver(kept);
  });

  async function fromDisk(id: number): Promise<EventPage> {
    await recorder.begun;
    const { oldest, rows, lastId: storedTo } = await db.read(batchesAfter, { id });
    const entries: LogEntry[] = [];
    let next = id;
    if (oldest !== undefined && id + 1 < oldest.firstId) {
      next = oldest.firstId - 1;
      // 0 requests everything available.
      if (oldest.pruned || id > 0) entries.push({ from: id + 1, to: next, reason: oldest.pruned ? 'expired' : 'unknown' });
    }
    for (const entry of rows.flatMap(decodeEntries)) {
      if (endOf(entry) <= next) continue;
      entries.push(isGap(entry) ? { ...entry, from: Math.max(entry.from, next + 1) } : entry);
      next = endOf(entry);
    }
    if (storedTo !== undefined) return { entries, next: Math.max(next, storedTo) };
    if (next >= ring.floor) return { entries, next };
    return { entries: [...entries, { from: next + 1, to: ring.floor, reason: 'lost' }], next: ring.floor };
  }

  const api: EventsApi = {
    lastId: () => lastId,
    viewOf,
    digest: (query) => db.search(digestEvents, query),
    async find(identity, { kind, sinceMs = 0, ...filter }) {
      const asked = {
        ...digestFor(identity, kind === undefined ? keptKinds : [kind]),
        category: null,
        afterId: 0,
        sinceMs,
        maxRead: limits.kept.count,
      };
      const { events: found } = await db.search(digestEvents, { ...asked, ...filter });
      return found
        .flatMap((event): LoggedEvent[] =>
          event.json === '' || !isKnown(event.kind)
            ? []
            : [{ id: event.id, kind: event.kind, owner: undefined, agentId: event.agentId ?? undefined, atMs: event.atMs, json: event.json }],
        )
        .toReversed();
    },
    follow(hear) {
      followers.add(hear);
      return () => void followers.delete(hear);
    },
    need(kind) {
      const need = needs.get(kind) ?? { by: 0, stop: bus.listen([kind], (event) => deliver(logged(event, clock.now(), undefined))) };
      needs.set(kind, need);
      need.by += 1;
      return () => {
        need.by -= 1;
        if (need.by > 0) return;
        need.stop();
        needs.delete(kind);
      };
    },
    after(id) {
      if (id >= lastId) return { entries: [], next: id };
      if (id < ring.floor) return fromDisk(id);
      const entries = ring.after(id, pageBytes);
      return { entries, next: entries.at(-1)?.id ?? id };
    },
    async recent(identity, limit) {
      const shows = viewOf(identity);
      const found: KeptEvent[] = [];
      const take = (entry: LogEntry) => !isGap(entry) && entry.json !== undefined && shows(entry) && found.push(entry) >= limit;
      let before = ring.floor + 1;
      for (const event of ring.newestFirst()) if (take(event)) return found.toReversed();
      for (;;) {
        const { rows, firstId } = await db.read(batchesBefore, { id: before });
        if (firstId === undefined) return found.toReversed();
        for (const row of rows)
          for (const entry of decodeEntries(row).toReversed()) if (endOf(entry) < before && take(entry)) return found.toReversed();
        before = firstId;
      }
    },
  };

  return {
    api,
    async [Symbol.asyncDispose]() {
      stop();
      await recorder.end(lastId + 1);
    },
  };
}

function logged<Id extends number | undefined>({ kind, payload, owner }: BusEvent, atMs: number, id: Id) {
  return { id, kind, owner, agentId: 'agentId' in payload ? (payload.agentId ?? undefined) : undefined, atMs, json: JSON.stringify(payload) };
}
