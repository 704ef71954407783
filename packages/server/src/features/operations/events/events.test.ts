import { describe, expect, it } from 'vitest';
import { eventMigrations } from './migrations.ts';
import { eventOperations, newestBatch } from './store.ts';
import type { Identity } from '../../../kernel/call-context.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import { createEventBus } from '../../../kernel/event-bus.ts';
import { silentLog } from '../../../kernel/log.ts';
import { createStepClock } from '@gatehouse/testkit';
import type { EventsApi, LoggedEvent } from './api.ts';
import { createEvents, eventLimits, type EventLimits } from './events.ts';

const admin: Identity = { principalId: 'token:root', tokenId: 'root', scopes: ['*'] };

async function openLog(options: { readonly db?: Db; readonly clock?: ReturnType<typeof createStepClock>; readonly limits?: EventLimits } = {}) {
  const db = options.db ?? (await openInlineDb({ migrations: eventMigrations, operations: eventOperations }));
  const clock = options.clock ?? createStepClock();
  const bus = createEventBus((error) => {
    throw error;
  });
  const events = await createEvents({ db, bus, clock, log: silentLog, limits: options.limits ?? eventLimits });
  return {
    db,
    clock,
    bus,
    api: events.api,
    say(text: string, times = 1) {
      for (let n = 0; n < times; n += 1) bus.emit('system:error', { source: 'test', message: text, timestamp: clock.now() });
    },
    end: () => events[Symbol.asyncDispose](),
  };
}

const small: EventLimits = { ...eventLimits, ring: { maxCount: 4, maxBytes: 1_000_000 }, batch: { count: 3, chars: 1_000_000 } };

/** Reads to the end, abbreviated: the messages, and gaps as `reason from..to`, ids counted from `base`. */
async function readFrom(api: EventsApi, id: number, base = id): Promise<string[]> {
  const heard: string[] = [];
  let at = id;
  while (at < api.lastId()) {
    const { entries, next } = await api.after(at);
    for (const entry of entries) heard.push('reason' in entry ? `${entry.reason} ${entry.from - base}..${entry.to - base}` : messageOf(entry));
    expect(next).toBeGreaterThan(at);
    at = next;
  }
  return heard;
}

function messageOf(event: LoggedEvent): string {
  const payload: unknown = JSON.parse(event.json ?? '"not kept"');
  return typeof payload === 'object' && payload !== null && 'message' in payload ? String(payload.message) : String(payload);
}

describe('the event log', () => {
  it('returns ids one by one and what followed an id from memory', async () => {
    const log = await openLog();
    const start = log.api.lastId();
    for (const text of ['a', 'b', 'c']) log.say(text);
    expect(log.api.lastId()).toBe(start + 3);
    expect(await readFrom(log.api, start)).toEqual(['a', 'b', 'c']);
    expect(await readFrom(log.api, start + 2)).toEqual(['c']);
    expect(log.api.after(start + 3)).toEqual({ entries: [], next: start + 3 });
    await log.end();
  });

  it('continues from disk to memory without loss or duplicates, from any position', async () => {
    const log = await openLog({ limits: small });
    const start = log.api.lastId();
    const said = Array.from({ length: 23 }, (_, n) => `m${n}`);
    for (const text of said) {
      log.say(text);
      await log.db.status();
    }
    for (let at = 0; at <= said.length; at += 1) expect(await readFrom(log.api, start + at)).toEqual(said.slice(at));
    await log.end();
  });

  it('continues after an orderly end, with larger ids also when the clock went back', async () => {
    const first = await openLog();
    const start = first.api.lastId();
    first.say('before');
    await first.end();
    const second = await openLog({ db: first.db, clock: createStepClock(1_000) });
    expect(second.api.lastId()).toBeGreaterThan(start + 1);
    second.say('after');
    expect(await readFrom(second.api, start)).toEqual(['before', 'after']);
    expect(await readFrom(second.api, start + 1)).toEqual(['after']);
    expect((await second.api.recent(admin, 10)).map(messageOf)).toEqual(['before', 'after']);
    await second.end();
  });

  it('reports what a crash may have lost', async () => {
    const first = await openLog();
    const start = first.api.lastId();
    first.say('stored');
    first.clock.advance(1_000);
    await expect.poll(async () => (await first.db.read(newestBatch, {}))?.lastId).toBe(start + 1);
    first.say('lost');
    const second = await openLog({ db: first.db, clock: createStepClock(first.clock.now() + 5_000) });
    const boundary = second.api.lastId() - start;
    second.say('after');
    expect(await readFrom(second.api, start)).toEqual(['stored', `lost 2..${boundary}`, 'after']);
    // A reader that had seen the lost one is notified from there.
    expect(await readFrom(second.api, start + 2, start)).toEqual([`lost 3..${boundary}`, 'after']);
    await second.end();
  });

  it('keeps a limited number and reports which are gone', async () => {
    const limits: EventLimits = { ...small, kept: { count: 10, chars: 1_000_000, days: 7 } };
    const log = await openLog({ limits });
    const start = log.api.lastId();
    for (let n = 0; n < 60; n += 1) {
      log.say(`m${n}`);
      if (n % 3 === 2) await expect.poll(async () => (await log.db.read(newestBatch, {}))?.lastId).toBe(start + n + 1);
    }
    const [gap, ...rest] = await readFrom(log.api, start);
    const kept = rest.length;
    expect(kept).toBeGreaterThanOrEqual(10);
    expect(kept).toBeLessThan(20);
    expect(gap).toBe(`expired 1..${60 - kept}`);
    expect(rest).toEqual(Array.from({ length: kept }, (_, n) => `m${60 - kept + n}`));
    await log.end();
  });

  it('drops what is past its retention', async () => {
    const limits: EventLimits = { ...eventLimits, kept: { ...eventLimits.kept, days: 1 } };
    const first = await openLog({ limits });
    const start = first.api.lastId();
    first.say('old');
    await first.end();
    const second = await openLog({ db: first.db, clock: createStepClock(first.clock.now() + 2 * 86_400_000), limits });
    second.say('new');
    const [gap, message] = await readFrom(second.api, start);
    expect([gap?.split(' ')[0], message]).toEqual(['expired', 'new']);
    await second.end();
  });

  it('distinguishes ids that it never assigned from those that are gone, and 0 from both', async () => {
    const log = await openLog();
    log.say('a');
    const start = log.api.lastId() - 1;
    expect(await readFrom(log.api, 5, 0)).toEqual([`unknown 6..${start - 1}`, 'a']);
    expect(await readFrom(log.api, 0)).toEqual(['a']);
    await log.end();
  });

  it('stores no messages of /v1, and reports that later', async () => {
    const first = await openLog();
    const start = first.api.lastId();
    const about = { conversationRef: 'cv_1', sessionKey: 'k', agentId: 'default', turnId: 'tn_1', traceId: 't', timestamp: 1 };
    first.bus.emit('message:sent', { ...about, origin: 'v1', messageId: 'ms_1', content: 'of a stateless call', finishReason: 'stop' }, 'token:a');
    first.bus.emit('message:sent', { ...about, origin: 'rpc', messageId: 'ms_2', content: 'of a conversation', finishReason: 'stop' }, 'token:a');
    expect((await first.api.recent(admin, 10)).map((event) => event.json)).toEqual([
      expect.stringContaining('stateless'),
      expect.stringContaining('of a conversation'),
    ]);
    await first.end();
    const second = await openLog({ db: first.db });
    const { entries } = await second.api.after(start);
    expect(entries).toMatchObject([
      { id: start + 1, kind: 'message:sent', owner: 'token:a', json: undefined },
      { id: start + 2, json: expect.stringContaining('of a conversation') },
    ]);
    expect(await second.api.recent(admin, 10)).toMatchObject([{ id: start + 2 }]);
    await second.end();
  });

  it('batches events that arrive during a write with later ones', async () => {
    const real = await openInlineDb({ migrations: eventMigrations, operations: eventOperations });
    let rows = 0;
    let during = 0;
    const db: Db = {
      ...real,
      telemetry(operation, input) {
        rows += 1;
        if (during > 0) log.say(`during ${(during -= 1)}`);
        return real.telemetry(operation, input);
      },
    };
    const log = await openLog({ db, limits: { ...eventLimits, batch: { count: 3, chars: 1_000_000 } } });
    const start = log.api.lastId();
    const storedTo = async () => ((await real.read(newestBatch, {}))?.lastId ?? 0) - start;
    await expect.poll(storedTo).toBe(0);
    during = 9;
    log.say('before', 3);
    await expect.poll(storedTo).toBe(3);
    for (let turn = 0; turn < 20; turn += 1) await real.status();
    expect([rows, await storedTo()]).toEqual([2, 3]);
    log.say('behind', 2);
    await expect.poll(storedTo).toBe(6);
    log.clock.advance(1_000);
    await expect.poll(storedTo).toBe(7);
    for (let turn = 0; turn < 20; turn += 1) await real.status();
    expect([rows, await storedTo()]).toEqual([4, 7]);
    await log.end();
    expect(await real.read(newestBatch, {})).toMatchObject({ totalCount: 8, ended: 1 });
  });

  it('survives a database that rejects writes, within limits, and reports what is missing', async () => {
    const real = await openInlineDb({ migrations: eventMigrations, operations: eventOperations });
    let full = false;
    const db: Db = { ...real, telemetry: (operation, input) => (full ? Promise.reject(new Error('disk full')) : real.telemetry(operation, input)) };
    const limits: EventLimits = { ...small, waiting: { count: 6, chars: 1_000_000 } };
    const log = await openLog({ db, limits });
    const start = log.api.lastId();
    log.say('stored');
    log.clock.advance(1_000);
    await expect.poll(async () => (await real.read(newestBatch, {}))?.lastId).toBe(start + 1);
    full = true;
    for (let n = 2; n < 20; n += 1) {
      log.say(`m${n}`);
      await Promise.resolve();
    }
    await expect.poll(async () => (await readFrom(log.api, start))[0]).toBe('stored');
    full = false;
    log.clock.advance(1_000);
    await log.end();
    const next = await openLog({ db: real, limits });
    const heard = await readFrom(next.api, start);
    expect(heard[0]).toBe('stored');
    expect(heard[1]).toMatch(/^lost 2\.\.\d+$/);
    const lost = Number(heard[1]?.split('..')[1]);
    expect(heard.slice(2)).toEqual(Array.from({ length: 19 - lost }, (_, n) => `m${lost + 1 + n}`));
    await next.end();
  });

  it('produces transient kinds only while somebody needs them, delivers them once, and keeps none', async () => {
    const log = await openLog();
    const start = log.api.lastId();
    const heard: LoggedEvent[] = [];
    log.api.follow((event) => heard.push(event));
    expect([log.bus.wants('message:streaming'), log.bus.wants('observability:metrics'), log.bus.wants('message:sent')]).toEqual([false, false, true]);
    const releases = [log.api.need('message:streaming'), log.api.need('message:streaming')];
    const about = {
      conversationRef: 'cv_1',
      sessionKey: 'k',
      agentId: 'default',
      turnId: 'tn_1',
      traceId: 't',
      timestamp: 1,
      origin: 'rpc' as const,
    };
    log.bus.emit('message:streaming', { ...about, messageId: 'ms_1', delta: 'x' }, 'token:a');
    releases[0]?.();
    log.bus.emit('message:streaming', { ...about, messageId: 'ms_1', delta: 'y' }, 'token:a');
    releases[1]?.();
    log.bus.emit('message:streaming', { ...about, messageId: 'ms_1', delta: 'z' }, 'token:a');
    expect(heard.map(({ id, json }) => [id, json?.includes('"delta":"x"'), json?.includes('"delta":"y"')])).toEqual([
      [undefined, true, false],
      [undefined, false, true],
    ]);
    expect(log.bus.wants('message:streaming')).toBe(false);
    expect(log.api.lastId()).toBe(start);
    await log.end();
  });

  it('finds the newest that a caller may see, over any number of rows', async () => {
    const log = await openLog({ limits: small });
    const start = log.api.lastId();
    log.bus.emit('agent:hot_added', { agentId: 'helper', timestamp: 1 });
    log.say('not for you', 40);
    await expect.poll(async () => (await log.db.read(newestBatch, {}))?.lastId).toBeGreaterThan(start + 37);
    const plain: Identity = { principalId: 'token:a', tokenId: 'a', scopes: ['rpc'] };
    expect(await log.api.recent(plain, 50)).toMatchObject([{ id: start + 1, kind: 'agent:hot_added' }]);
    expect((await log.api.recent(admin, 30)).map(({ id }) => id)).toEqual(Array.from({ length: 30 }, (_, n) => start + 12 + n));
    await log.end();
  });
});
