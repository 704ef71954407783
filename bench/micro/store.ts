// G12: CPU of one stored message through the storage threads, against a bare insert with the same durability and the
// same arrangement of threads (one writer, group commit, one message per turn of the loop, synced before the answer).
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, receiveMessageOnPort, Worker, workerData } from 'node:worker_threads';
import { systemClock } from '../../packages/server/src/kernel/clock.ts';
import { type Migration, operation, query } from '../../packages/server/src/kernel/db/operation.ts';
import { openDb } from '../../packages/server/src/kernel/db/sqlite/open-db.ts';
import { serveStorage } from '../../packages/server/src/kernel/db/sqlite/worker.ts';
import { silentLog } from '../../packages/server/src/kernel/log.ts';
import { median } from '../lib/stats.ts';

interface NewMessage {
  readonly conversationId: number;
  readonly role: string;
  readonly content: string;
  readonly atMs: number;
}

declare module '../../packages/server/src/kernel/db/tables.ts' {
  interface Tables {
    readonly storedConversation: { readonly id: number; readonly lastSeq: number; readonly messageCount: number; readonly updatedAtMs: number };
    readonly storedMessage: {
      readonly id: number | null;
      readonly conversationId: number;
      readonly seq: number;
      readonly role: string;
      readonly content: string;
      readonly createdAtMs: number;
    };
  }
}

const schema = [
  'CREATE TABLE stored_conversation (id INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, message_count INTEGER NOT NULL, updated_at_ms INTEGER NOT NULL)',
  'CREATE TABLE stored_message (id INTEGER PRIMARY KEY, conversation_id INTEGER NOT NULL, seq INTEGER NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL, created_at_ms INTEGER NOT NULL, UNIQUE (conversation_id, seq))',
];
const migrations: readonly Migration[] = [{ id: '001-messages', up: schema }];

const grow = query<NewMessage, { lastSeq: number }>(({ db, sql, p }) =>
  db
    .updateTable('storedConversation')
    .set({ lastSeq: sql<number>`last_seq + 1`, messageCount: sql<number>`message_count + 1`, updatedAtMs: p('atMs') })
    .where('id', '=', p('conversationId'))
    .returning('lastSeq'),
);
const insert = query<NewMessage & { seq: number }>(({ db, p }) =>
  db
    .insertInto('storedMessage')
    .values({ conversationId: p('conversationId'), seq: p('seq'), role: p('role'), content: p('content'), createdAtMs: p('atMs') }),
);
const create = query<{ id: number }>(({ db, p }) =>
  db.insertInto('storedConversation').values({ id: p('id'), lastSeq: 0, messageCount: 0, updatedAtMs: 0 }),
);

const append = operation('bench.append', async (tx, input: NewMessage): Promise<number> => {
  const conversation = await tx.get(grow, input);
  if (conversation === undefined) throw new Error('no such conversation');
  await tx.run(insert, { ...input, seq: conversation.lastSeq });
  return conversation.lastSeq;
});
const insertOnly = operation('bench.insertOnly', async (tx, input: NewMessage & { seq: number }): Promise<void> => {
  await tx.run(insert, input);
});
const fill = operation('bench.fill', async (tx, input: { count: number }): Promise<void> => {
  for (let id = 1; id <= input.count; id++) await tx.run(create, { id });
});
const operations = [append, insertOnly, fill];

const conversations = 200;
const clients = 16;

type Store = (index: number) => Promise<unknown>;

/** The floor: a prepared insert in a thread, nothing else. */
function serveBare(file: string): void {
  const port = parentPort;
  if (port === null) throw new Error('a thread is needed');
  const db = new DatabaseSync(file);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY');
  for (const statement of schema) db.exec(statement);
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const insertRow = db.prepare('INSERT INTO stored_message (conversation_id, seq, role, content, created_at_ms) VALUES (?, ?, ?, ?, ?)');
  port.on('message', (first: unknown[]) => {
    let count = 0;
    begin.run();
    for (let batch: unknown[] | undefined = first; batch !== undefined; batch = receiveMessageOnPort(port)?.message) {
      for (let at = 0; at < batch.length; at += 5) {
        insertRow.run(Number(batch[at]), Number(batch[at + 1]), String(batch[at + 2]), String(batch[at + 3]), Number(batch[at + 4]));
        count += 1;
      }
    }
    commit.run();
    port.postMessage(count);
  });
}

function openBare(file: string): { readonly store: Store; readonly close: () => Promise<unknown> } {
  const worker = new Worker(new URL(import.meta.url), { workerData: { bare: file } });
  let outbox: unknown[] = [];
  const waiting: (() => void)[] = [];
  worker.on('message', (count: number) => {
    for (const resolve of waiting.splice(0, count)) resolve();
  });
  const flush = () => {
    worker.postMessage(outbox);
    outbox = [];
  };
  return {
    store(index) {
      if (outbox.length === 0) setImmediate(flush);
      outbox.push(1 + (index % conversations), Math.floor(index / conversations), 'user', content, index);
      return new Promise<void>((resolve) => waiting.push(resolve));
    },
    close: () => worker.terminate(),
  };
}

const content = 'x'.repeat(300);

/** Microseconds of CPU of the whole process and of time, per message. */
async function run(store: Store, from: number, count: number): Promise<{ readonly cpu: number; readonly wall: number }> {
  const cpuBefore = process.cpuUsage();
  const before = performance.now();
  let next = from;
  const client = async () => {
    while (next < from + count) await store(next++);
  };
  await Promise.all(Array.from({ length: clients }, client));
  const used = process.cpuUsage(cpuBefore);
  return { cpu: (used.user + used.system) / count, wall: ((performance.now() - before) * 1000) / count };
}

export interface StoreRound {
  readonly bareCpu: number;
  readonly insertCpu: number;
  readonly appendCpu: number;
  readonly bareWall: number;
  readonly appendWall: number;
}

/** Interleaved rounds of the bare insert, the same insert as an operation, and the append of a message. */
export async function measureStore(rounds: number, perRound: number): Promise<StoreRound[]> {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
  const workerUrl = new URL(import.meta.url);
  const bare = openBare(join(dir, 'bare.db'));
  const own = await openDb({ dataDir: join(dir, 'own'), workerUrl, clock: systemClock, log: silentLog });
  const plain = await openDb({ dataDir: join(dir, 'plain'), workerUrl, clock: systemClock, log: silentLog });
  try {
    await own.write(fill, { count: conversations });
    const results: StoreRound[] = [];
    const appendOne: Store = (index) => own.write(append, { conversationId: 1 + (index % conversations), role: 'user', content, atMs: index });
    const insertOne: Store = (index) =>
      plain.write(insertOnly, {
        conversationId: 1 + (index % conversations),
        seq: Math.floor(index / conversations),
        role: 'user',
        content,
        atMs: index,
      });
    for (let round = -2; round < rounds; round++) {
      const from = (round + 2) * perRound;
      const bareRound = await run(bare.store, from, perRound);
      const insertRound = await run(insertOne, from, perRound);
      const appendRound = await run(appendOne, from, perRound);
      // The first two warm up.
      if (round >= 0)
        results.push({
          bareCpu: bareRound.cpu,
          insertCpu: insertRound.cpu,
          appendCpu: appendRound.cpu,
          bareWall: bareRound.wall,
          appendWall: appendRound.wall,
        });
    }
    return results;
  } finally {
    await bare.close();
    await own[Symbol.asyncDispose]();
    await plain[Symbol.asyncDispose]();
    rmSync(dir, { recursive: true, force: true });
  }
}

if (!isMainThread) {
  if (typeof workerData === 'object' && workerData !== null && 'bare' in workerData) serveBare(String(workerData.bare));
  else await serveStorage({ operations, migrations });
} else if (import.meta.main) {
  const { values } = parseArgs({ options: { rounds: { type: 'string', default: '9' }, ops: { type: 'string', default: '20000' } } });
  const rounds = await measureStore(Number(values.rounds), Number(values.ops));
  const figure = (pick: (round: StoreRound) => number) => median(rounds.map(pick)).toFixed(2);
  console.log(`CPU µs: bare insert ${figure((r) => r.bareCpu)}, insert ${figure((r) => r.insertCpu)}, append ${figure((r) => r.appendCpu)}`);
  console.log(`time µs: bare insert ${figure((r) => r.bareWall)}, append ${figure((r) => r.appendWall)}`);
  console.log(`CPU ratio: insert ${figure((r) => r.insertCpu / r.bareCpu)}, append ${figure((r) => r.appendCpu / r.bareCpu)}`);
  console.log(JSON.stringify({ ratios: rounds.map((round) => round.appendCpu / round.bareCpu) }));
}
