import { createStepClock } from '@gatehouse/testkit';
import { describe, expect, it } from 'vitest';
import { AppError } from './app-error.ts';
import { createLanes, type LaneEntry, type Lanes, type Lease } from './lane.ts';

const never = new AbortController().signal;
function entry(over: Partial<LaneEntry> = {}): LaneEntry {
  return { key: 'k', group: 'g', groupLimit: 64, principalId: 'p', signal: never, ...over };
}

/** Collects the order of grants; each holder keeps its lease until it is released. */
function recorder(lanes: Lanes) {
  const order: string[] = [];
  const leases = new Map<string, Lease>();
  return {
    order,
    leases,
    ask(name: string, over: Partial<LaneEntry> = {}) {
      return lanes.acquire(entry(over)).then((lease) => {
        order.push(name);
        leases.set(name, lease);
      });
    },
  };
}
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('lanes', () => {
  it('lets one holder of a key in at a time, in order of arrival', async () => {
    const lanes = createLanes();
    let inside = 0;
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        using _lease = await lanes.acquire(entry());
        inside += 1;
        expect(inside).toBe(1);
        order.push(index);
        await settle();
        inside -= 1;
      }),
    );
    expect(order).toEqual(Array.from({ length: 50 }, (_, index) => index));
    expect(lanes.counts()).toEqual({ running: 0, queued: 0 });
  });

  it('runs different keys side by side up to the limit of the group', async () => {
    const lanes = createLanes();
    const seen = recorder(lanes);
    for (const name of ['a', 'b', 'c']) void seen.ask(name, { key: name, groupLimit: 2 });
    await settle();
    expect(seen.order).toEqual(['a', 'b']);
    expect(lanes.counts()).toEqual({ running: 2, queued: 1 });
    expect([lanes.ofGroup('g'), lanes.ofGroup('other')]).toEqual([
      { running: 2, queued: 1 },
      { running: 0, queued: 0 },
    ]);
    seen.leases.get('a')?.release();
    seen.leases.get('a')?.release();
    await settle();
    expect(seen.order).toEqual(['a', 'b', 'c']);
    expect(lanes.counts()).toEqual({ running: 2, queued: 0 });
  });

  it('refuses the entry that would make a lane longer than its limit, and says when to come back', async () => {
    const lanes = createLanes({ maxQueuedPerLane: 2, retryAfterMs: 700 });
    const holder = await lanes.acquire(entry());
    const waiting = [lanes.acquire(entry()), lanes.acquire(entry())];
    const refused = await lanes.acquire(entry()).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(AppError);
    expect(refused).toMatchObject({ code: 'rate_limited', full: 'lane', details: { retryAfterMs: 700 } });
    holder.release();
    for (const each of waiting) (await each).release();
    expect(lanes.counts()).toEqual({ running: 0, queued: 0 });
  });

  it('refuses as unavailable when too many wait in all', async () => {
    const lanes = createLanes({ maxQueued: 1 });
    const holder = await lanes.acquire(entry({ key: 'a', groupLimit: 1 }));
    const waiting = lanes.acquire(entry({ key: 'b', groupLimit: 1 }));
    await expect(lanes.acquire(entry({ key: 'c', groupLimit: 1 }))).rejects.toMatchObject({ code: 'unavailable', full: 'group' });
    holder.release();
    (await waiting).release();
  });

  it('leaves half of the queue to others, however much one principal asks for', async () => {
    const lanes = createLanes({ maxQueued: 5, retryAfterMs: 700 });
    const holder = await lanes.acquire(entry({ key: 'holder', groupLimit: 1 }));
    const ask = (key: string, principalId: string, signal = never) => lanes.acquire(entry({ key, groupLimit: 1, principalId, signal }));
    const leaves = new AbortController();
    const greedy = [ask('a', 'greedy', leaves.signal), ask('b', 'greedy'), ask('c', 'greedy')];
    await expect(ask('d', 'greedy')).rejects.toMatchObject({ code: 'rate_limited', details: { retryAfterMs: 700 } });
    const modest = ask('e', 'modest');
    expect(lanes.counts().queued).toBe(4);
    leaves.abort();
    await expect(greedy[0]).rejects.toMatchObject({ code: 'cancelled' });
    greedy.push(ask('f', 'greedy'));
    holder.release();
    for (const waiting of [...greedy.slice(1), modest]) void waiting.then((lease) => lease.release());
    await Promise.all([...greedy.slice(1), modest]);
    // Granted entries no longer count.
    const again = await ask('holder', 'other');
    const three = ['a', 'b', 'c'].map((key) => ask(key, 'greedy'));
    await expect(ask('d', 'greedy')).rejects.toMatchObject({ code: 'rate_limited' });
    again.release();
    for (const waiting of three) (await waiting).release();
  });

  it('reserves a lane for a holder that returns: it enters before all waiting entries and is never refused', async () => {
    const lanes = createLanes({ maxQueuedPerLane: 2 });
    const seen = recorder(lanes);
    await seen.ask('first');
    lanes.keep('k');
    seen.leases.get('first')?.release();
    void seen.ask('second');
    void seen.ask('third');
    await settle();
    expect(seen.order).toEqual(['first']);
    expect(lanes.of('k')).toEqual({ running: true, queued: 2 });
    await expect(seen.ask('fourth')).rejects.toThrow('Too many turns wait');
    await seen.ask('back', { continues: true });
    lanes.unkeep('k');
    await settle();
    expect(seen.order).toEqual(['first', 'back']);
    seen.leases.get('back')?.release();
    await settle();
    seen.leases.get('second')?.release();
    await settle();
    expect(seen.order).toEqual(['first', 'back', 'second', 'third']);
    seen.leases.get('third')?.release();
    expect(lanes.of('k')).toEqual({ running: false, queued: 0 });
    // Without anybody who returned, the waiting entries continue.
    lanes.keep('k');
    void seen.ask('fifth');
    await settle();
    lanes.unkeep('k');
    await settle();
    expect(seen.order.at(-1)).toBe('fifth');
  });

  describe('that measure how long holders take', () => {
    const limit = 10;
    /** A full group, in which a holder took `heldMs` before. */
    async function full(heldMs: number, groupLimit = limit) {
      const clock = createStepClock();
      const lanes = createLanes({ monotonic: clock.monotonic });
      const ask = (key: string, principalId = 'p', group = 'g') => lanes.acquire(entry({ key, group, groupLimit, principalId }));
      const first = await ask('first');
      clock.advance(heldMs);
      first.release();
      const held = await Promise.all(Array.from({ length: groupLimit }, (_, n) => ask(`held-${n}`)));
      const waiting: Promise<Lease>[] = [];
      /** Asks until it is refused; returns how many wait, and the refusal. */
      async function fill(principalId = 'p') {
        for (let n = 0; n < 2_000; n += 1) {
          const before = lanes.counts().queued;
          const one = ask(`${principalId}-${n}`, principalId);
          if (lanes.counts().queued > before) waiting.push(one);
          else return { queued: before, refusal: await one.catch((error: unknown) => error) };
        }
        throw new Error('nothing was refused');
      }
      return { clock, lanes, ask, held, fill, waiting };
    }

    it('let nobody wait longer than half the time of a holder', async () => {
      const { fill } = await full(8_000);
      const { queued, refusal } = await fill();
      // 50 × 8 s / 10 slots are 40 s; 5 are served within 4 s, but so few are never refused.
      expect(queued).toBe(16);
      expect(refusal).toMatchObject({ code: 'unavailable', details: { retryAfterMs: (17 * 8_000) / limit } });
      const wide = await full(8_000, 64);
      expect((await wide.fill()).queued).toBe(32);
    });

    it('let everybody wait for a second', async () => {
      const { fill } = await full(100);
      expect((await fill()).queued).toBe(100);
    });

    it('learn when holders take longer, and when they take less', async () => {
      const { clock, lanes, held, ask, fill } = await full(100);
      clock.advance(8_000);
      for (const lease of held) lease.release();
      const again = await Promise.all(Array.from({ length: limit }, (_, n) => ask(`again-${n}`)));
      expect((await fill()).queued).toBeLessThan(40);
      for (const lease of again) lease.release();
      await expect.poll(() => lanes.counts().running).toBe(limit);
    });

    it('use the age of the first holder before any has finished', async () => {
      const clock = createStepClock();
      const lanes = createLanes({ monotonic: clock.monotonic });
      const ask = (key: string) => lanes.acquire(entry({ key, groupLimit: 1 }));
      await ask('holder');
      const early = Array.from({ length: 30 }, (_, n) => ask(`early-${n}`));
      expect(lanes.counts().queued).toBe(early.length);
      clock.advance(5_000);
      await expect(ask('late')).rejects.toMatchObject({ code: 'unavailable' });
    });

    it('leave capacity to others when one principal has filled the queue', async () => {
      const { fill, ask, lanes } = await full(8_000);
      const { queued } = await fill('greedy');
      void ask('modest-0', 'modest');
      void ask('modest-1', 'modest');
      expect(lanes.counts().queued).toBe(queued + 2);
    });

    it('count neither entries that left nor those queued for a conversation', async () => {
      const { fill, ask, lanes, held, waiting } = await full(8_000);
      const { queued } = await fill();
      for (let n = 0; n < 5; n += 1) void ask('held-0');
      expect(lanes.counts().queued).toBe(queued + 5);
      for (const lease of held.slice(1)) lease.release();
      await Promise.all(waiting.slice(0, limit - 1));
      expect((await fill('later')).queued).toBe(queued + 5);
    });
  });

  it('serves principals in turn when the group is full', async () => {
    const lanes = createLanes();
    const seen = recorder(lanes);
    void seen.ask('holder', { key: 'holder', groupLimit: 1, principalId: 'greedy' });
    for (let index = 0; index < 4; index += 1) void seen.ask(`greedy${index}`, { key: `greedy${index}`, groupLimit: 1, principalId: 'greedy' });
    void seen.ask('modest', { key: 'modest', groupLimit: 1, principalId: 'modest' });
    void seen.ask('third', { key: 'third', groupLimit: 1, principalId: 'third' });
    await settle();
    for (let index = 0; index < 7; index += 1) {
      seen.leases.get(seen.order.at(-1) ?? '')?.release();
      await settle();
    }
    expect(seen.order).toEqual(['holder', 'greedy0', 'modest', 'third', 'greedy1', 'greedy2', 'greedy3']);
    expect(lanes.counts()).toEqual({ running: 0, queued: 0 });
  });

  it('removes an aborted waiter at once and keeps the order of the others', async () => {
    const lanes = createLanes();
    const seen = recorder(lanes);
    const leaver = new AbortController();
    void seen.ask('a');
    const aborted = lanes.acquire(entry({ signal: leaver.signal }));
    void seen.ask('c');
    leaver.abort();
    await expect(aborted).rejects.toMatchObject({ code: 'cancelled' });
    seen.leases.get('a')?.release();
    await settle();
    expect(seen.order).toEqual(['a', 'c']);
    leaver.abort();
    expect(lanes.counts()).toEqual({ running: 1, queued: 0 });
    await expect(lanes.acquire(entry({ signal: leaver.signal }))).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('advances the lane when its head aborts while it waits for its group', async () => {
    const lanes = createLanes();
    const seen = recorder(lanes);
    const leaver = new AbortController();
    void seen.ask('holder', { key: 'other', groupLimit: 1 });
    const head = lanes.acquire(entry({ groupLimit: 1, signal: leaver.signal }));
    void seen.ask('behind', { groupLimit: 1 });
    leaver.abort();
    await expect(head).rejects.toMatchObject({ code: 'cancelled' });
    await settle();
    expect(seen.order).toEqual(['holder']);
    seen.leases.get('holder')?.release();
    await settle();
    expect(seen.order).toEqual(['holder', 'behind']);
    seen.leases.get('behind')?.release();
    expect(lanes.counts()).toEqual({ running: 0, queued: 0 });
  });

  it('reports what runs and waits in one lane', async () => {
    const lanes = createLanes();
    expect(lanes.of('k')).toEqual({ running: false, queued: 0 });
    const other = await lanes.acquire(entry({ key: 'other', groupLimit: 1 }));
    const waiting = [lanes.acquire(entry({ groupLimit: 1 })), lanes.acquire(entry({ groupLimit: 1 }))];
    expect(lanes.of('k')).toEqual({ running: false, queued: 2 });
    other.release();
    expect(lanes.of('k')).toEqual({ running: true, queued: 1 });
    for (const each of waiting) (await each).release();
    expect(lanes.of('k')).toEqual({ running: false, queued: 0 });
  });

  it('admits waiting entries under a raised limit when the next one arrives', async () => {
    const lanes = createLanes();
    const seen = recorder(lanes);
    void seen.ask('a', { key: 'a', groupLimit: 1 });
    void seen.ask('b', { key: 'b', groupLimit: 1 });
    void seen.ask('c', { key: 'c', groupLimit: 3 });
    await settle();
    expect(seen.order.toSorted()).toEqual(['a', 'b', 'c']);
  });

  it('keeps its counts and its order through random arrivals, aborts and releases', async () => {
    const lanes = createLanes({ maxQueuedPerLane: 1000, maxQueued: 10_000 });
    let seed = 7;
    const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
    const holding = new Set<string>();
    const perKeyOrder = new Map<string, number[]>();
    let granted = 0;
    let aborted = 0;
    const all = Array.from({ length: 2000 }, async (_, index) => {
      const key = `k${random(20)}`;
      const controller = new AbortController();
      if (random(4) === 0) setImmediate(() => controller.abort());
      try {
        using _lease = await lanes.acquire(entry({ key, groupLimit: 5, principalId: `p${random(3)}`, signal: controller.signal }));
        expect(holding.has(key)).toBe(false);
        holding.add(key);
        expect(holding.size).toBeLessThanOrEqual(5);
        perKeyOrder.set(key, [...(perKeyOrder.get(key) ?? []), index]);
        granted += 1;
        await settle();
        holding.delete(key);
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        aborted += 1;
      }
    });
    await Promise.all(all);
    expect(granted + aborted).toBe(2000);
    expect(aborted).toBeGreaterThan(0);
    for (const order of perKeyOrder.values()) expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(lanes.counts()).toEqual({ running: 0, queued: 0 });
  });
});
