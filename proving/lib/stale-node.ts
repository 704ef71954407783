import { createLease, type NodeLease } from '../../packages/server/src/features/operations/nodes/lease/lease.ts';
import { adoptNode, beginNode, claimLapsed } from '../../packages/server/src/features/operations/nodes/store.ts';
import type { WorkItem } from '../../packages/server/src/features/unattended/durable/api.ts';
import { AppError } from '../../packages/server/src/kernel/app-error.ts';
import { systemClock } from '../../packages/server/src/kernel/clock.ts';
import { Connection } from '../../packages/server/src/kernel/db/postgres/connection.ts';
import { openInlinePostgres } from '../../packages/server/src/kernel/db/postgres/inline.ts';
import { silentLog } from '../../packages/server/src/kernel/log.ts';
import { abortOpenTurns } from '../../packages/server/src/transactions/open-work.ts';
import { migrations, operations } from '../../packages/server/src/transactions/registry.ts';
import { pause } from './daemon.ts';
import { type Random, randomFrom } from './random.ts';
import { acceptedKinds, accepting, claimedKinds, claimPiece, makeNodePiece, nodeKinds } from './stale-node-work.ts';
import { endAll, endGraphs, type Piece } from './stale-work.ts';

// One of two owners on one PostgreSQL, in a separate process, so that it can be frozen and a fault can be built into it.
const [url = '', side = '', seedText = '0'] = process.argv.slice(2);
/** Short, because each freeze outlasts one. */
const times = { leaseMs: 800, renewMs: 200, marginMs: 100, retryMs: 50 };
const schema = 10_000;
const startMs = Date.UTC(2026, 8, 21, 12);

/** What the parent asks for, in this order; `write` first of a process that was frozen meanwhile. */
export type Asked =
  /** Becomes the active node (`node`), or registers (`work`): then only claims and boots protect what it owns. */
  | { readonly do: 'begin'; readonly mode: 'node' | 'work'; readonly round: number }
  | { readonly do: 'prepare'; readonly from: number; readonly to: number }
  /** Claims what the other one has left. */
  | { readonly do: 'take over'; readonly from: number; readonly to: number }
  /** Makes every write of an owner about one work item. */
  | { readonly do: 'write'; readonly n: number }
  | { readonly do: 'end'; readonly from: number; readonly to: number };

/** Writes by name, and what became of each: `done`, `refused` because of the lease, or another error. */
export type Written = readonly (readonly [name: string, outcome: string])[];

interface Held {
  readonly kind: (typeof nodeKinds)[number];
  readonly piece: Piece;
  readonly claim: WorkItem | undefined;
}

const random: Random = randomFrom(Number(seedText));
const address = { url };
const db = await openInlinePostgres({ address, migrations, operations });
const held = new Map<number, Held>();
let lease: NodeLease | undefined;
let bootId = '';
let mode: 'node' | 'work' = 'node';
const kindOf = (n: number) => nodeKinds[n % nodeKinds.length] ?? 'webhook';
const nobody = { id: '', owner: '', fence: 0 };

async function begin(round: number): Promise<void> {
  bootId = `${mode}-${side}-${round}`;
  held.clear();
  if (mode === 'work') {
    // Its lease is over at once, and nobody renews it.
    const node = { bootId, homeId: `home-${side}`, version: '1', role: 'active' as const, leaseMs: 1, isSole: 0 as const, prunedBeforeMs: 0 };
    await db.write(beginNode, { ...node, atMs: startMs });
    return;
  }
  await lease?.release();
  const connect = () => Connection.open({ address, purpose: 'lease', clock: systemClock });
  const self = { bootId, homeId: `home-${side}`, version: '1' };
  lease = createLease({ connect, self, clock: systemClock, log: silentLog, times, onRenewed: () => {}, onLost: () => {} });
  await lease.standBy();
}

async function acquire(): Promise<void> {
  for (;;) {
    const attempt = await lease?.tryAcquire(schema);
    if (attempt?.acquired === true) return db.guard({ bootId, fence: attempt.fence });
    await pause(50);
  }
}

async function prepare(from: number, to: number): Promise<void> {
  if (mode === 'node') await acquire();
  for (let n = from; n < to; n += 1) {
    const kind = kindOf(n);
    const piece = await makeNodePiece(db, kind, n, bootId);
    const claim = await claimPiece(db, kind, bootId, startMs);
    for (const [, go] of piece.writes.slice(0, 3)) if (kind !== 'turn' && random.int(2) === 0) await go(db, claim ?? nobody);
    held.set(n, { kind, piece, claim });
  }
}

async function takeOver(from: number, to: number): Promise<void> {
  const claiming = { bootId, homeId: `home-${side}`, isSole: 0 as const, atMs: startMs };
  if (mode === 'node') {
    await acquire();
    await db.write(adoptNode, { ...claiming, prunedBeforeMs: 0 });
  } else await db.write(claimLapsed, claiming);
  await db.write(abortOpenTurns, { atMs: startMs });
  for (let n = from; n < to; n += 1) await claimPiece(db, kindOf(n), bootId, startMs + 61_000);
}

async function write(n: number): Promise<Written> {
  const own = held.get(n);
  if (own === undefined) throw new RangeError('this process does not own the work');
  const written: [string, string][] = [];
  const isAccepted = mode === 'node' && acceptedKinds.includes(own.kind);
  const all = isAccepted ? [...own.piece.writes, accepting(own.kind, n, bootId)] : own.piece.writes;
  for (const [name, go] of shuffled(all)) {
    const outcome = await go(db, own.claim ?? nobody).then(
      () => 'done',
      (error: unknown) => (error instanceof AppError && error.code === 'unavailable' ? 'refused' : String(error).slice(0, 200)),
    );
    written.push([`${own.kind}'s ${name}`, outcome]);
  }
  return written;
}

function shuffled<T>(all: readonly T[]): T[] {
  return all
    .map((one) => ({ one, at: random.next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ one }) => one);
}

async function answer(asked: Asked): Promise<unknown> {
  switch (asked.do) {
    case 'begin':
      mode = asked.mode;
      return begin(asked.round);
    case 'prepare':
      return prepare(asked.from, asked.to);
    case 'take over':
      return takeOver(asked.from, asked.to);
    case 'write':
      return write(asked.n);
    case 'end':
      await endAll(db, claimedKinds);
      return endGraphs(db, asked.from, asked.to);
  }
}

process.on('message', (asked: Asked) => {
  answer(asked).then(
    (result) => process.send?.({ result }),
    (error: unknown) => process.send?.({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
process.send?.({ result: 'ready' });
