import { createStepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Db } from '../../../kernel/db/db.ts';
import { operation, type Tx } from '../../../kernel/db/operation.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import { silentLog } from '../../../kernel/log.ts';
import type { WorkClaim, WorkItem } from './api.ts';
import { createDurable, type Durable } from './durable.ts';
import { nodeMigrations } from '../../operations/nodes/migrations.ts';
import { durableMigrations } from './migrations.ts';
import { acceptWork, durableOperations, settleWork } from './store.ts';

const accept = operation('test.accept', async (tx, works: readonly Parameters<typeof acceptWork>[1][]) => {
  for (const work of works) await acceptWork(tx, work);
});
const endWork = operation('test.end', settleWork);
const end = (claim: WorkClaim) => ({ ...claim, state: 'done' as const, atMs: 1 });
const finish = operation('test.finish', async (tx, claim: WorkClaim) => settleWork(tx, end(claim)));
/** Simulates a broken build, which takes the owner and fence from the row. */
const finishUnfenced = operation('test.finishUnfenced', async (tx: Tx, { id }: WorkClaim) => {
  const [row] = await tx.build<{ owner: string; fence: number }>((db) => db.selectFrom('workItem').select(['owner', 'fence']).where('id', '=', id));
  return row !== undefined && settleWork(tx, end({ id, ...row }));
});

/** A process that can be paused and resumed, as by SIGSTOP and SIGCONT; its writes arrive after that. */
class Owner implements AsyncDisposable {
  readonly durable: Durable;
  readonly items: WorkItem[] = [];
  readonly #db: Db;
  #gate = Promise.withResolvers<undefined>();

  constructor(db: Db, bootId: string) {
    this.#db = db;
    this.resume();
    const behindGate = <Input, Output>(run: (input: Input) => Promise<Output>, input: Input) => this.#gate.promise.then(() => run(input));
    this.durable = createDurable({
      db: {
        ...db,
        read: (op, input) => behindGate((given) => db.read(op, given), input),
        write: (op, input) => behindGate((given) => db.write(op, given), input),
      },
      clock,
      log: silentLog,
      bootId,
      endWork,
    });
    this.durable.api.handle(
      'mail',
      (item, signal) => {
        this.items.push(item);
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve('settled')));
      },
      { concurrency: perRound, maxAttempts: 3 },
    );
  }

  stop(): void {
    this.#gate = Promise.withResolvers();
  }

  resume(): void {
    this.#gate.resolve(undefined);
  }

  /** Makes the late writes for the items it holds; returns how many were accepted. */
  async write(by: typeof finish): Promise<number> {
    await this.#gate.promise;
    const written = await Promise.all(this.items.map((item) => this.#db.write(by, { id: item.id, owner: item.owner, fence: item.fence })));
    return written.filter(Boolean).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.resume();
    await this.durable[Symbol.asyncDispose]();
  }
}

const clock = createStepClock();
const perRound = 50;
let db: Db;
beforeEach(async () => {
  db = await openInlineDb({
    operations: [...durableOperations, endWork, accept, finish, finishUnfenced],
    migrations: [...durableMigrations, ...nodeMigrations],
  });
});
afterEach(() => db[Symbol.asyncDispose]());

/** Pauses an owner past its lease, lets another take over its work, then resumes the first one. */
async function lateWrites(round: number, by: typeof finish): Promise<{ stale: number; rightful: number }> {
  await using first = new Owner(db, `first ${round}`);
  await first.durable.api.start();
  const work = (n: number) => ({
    id: `wi_${round}_${n}`,
    kind: 'mail',
    key: `${round} ${n}`,
    digest: 'd',
    agentId: null,
    payload: null,
    atMs: clock.now(),
  });
  await db.write(
    accept,
    Array.from({ length: perRound }, (_, n) => work(n)),
  );
  await expect.poll(() => (first.durable.api.wake('mail'), first.items.length)).toBe(perRound);
  first.stop();
  clock.advance(61_000);
  await using second = new Owner(db, `second ${round}`);
  await second.durable.api.start();
  await expect.poll(() => second.items.length).toBe(perRound);
  expect(second.items.every(({ resumed }) => resumed)).toBe(true);
  first.resume();
  const stale = await first.write(by);
  return { stale, rightful: await second.write(by) };
}

test('none of 1,000 late writes by owners paused past their lease is accepted', async () => {
  let stale = 0;
  let rightful = 0;
  for (let round = 0; round < 1_000 / perRound; round += 1) {
    const written = await lateWrites(round, finish);
    stale += written.stale;
    rightful += written.rightful;
  }
  expect({ stale, rightful }).toEqual({ stale: 0, rightful: 1_000 });
}, 60_000);

test('without the fence check all of them are accepted', async () => {
  expect(await lateWrites(0, finishUnfenced)).toEqual({ stale: perRound, rightful: 0 });
});
