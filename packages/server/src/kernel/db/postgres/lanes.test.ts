import { describe, expect, it } from 'vitest';
import { operation, type OperationTraits } from '../operation.ts';
import { createLanes, type Lanes } from './lanes.ts';
import type { Transactions } from './transaction.ts';

const traits: OperationTraits<{ readonly key?: string; readonly name: string }> = { orderKey: ({ key }) => key };
const write = operation('test.write', async (_tx, _input: { readonly key?: string; readonly name: string }): Promise<void> => {}, traits);

/** Connections whose transactions end when the test says so; `running` names what each of them has. */
function createRig(count: number) {
  const open: { readonly lane: number; readonly names: string[]; readonly end: () => void }[] = [];
  const ended: string[] = [];
  const connections = Array.from({ length: count }, (_, lane): Transactions => ({
    run: (units) =>
      new Promise((resolve) => {
        const names = units.map(({ input }) => (input as { readonly name: string }).name);
        open.push({ lane, names, end: () => (ended.push(...names), resolve(names)) });
      }),
  }));
  return {
    lanes: createLanes(connections),
    ended,
    running: () => open.map(({ names }) => names),
    async endFirst() {
      open.shift()?.end();
      await settled();
    },
  };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
const add = (lanes: Lanes, name: string, key?: string) =>
  lanes.add({ operation: write, input: { name, ...(key !== undefined && { key }) }, enteredAt: 0 });

describe('lanes', () => {
  it('run writes with different keys at the same time, and those of one key in order', async () => {
    const { lanes, running, endFirst } = createRig(4);
    void add(lanes, 'a1', 'a');
    void add(lanes, 'b1', 'b');
    void add(lanes, 'a2', 'a');
    await settled();
    expect(running()).toEqual([['a1', 'a2'], ['b1']]);
    void add(lanes, 'a3', 'a');
    await settled();
    expect(running()).toHaveLength(2);
    await endFirst();
    expect(running()).toEqual([['b1'], ['a3']]);
  });

  it('run a write without a key after all earlier and before all later ones', async () => {
    const { lanes, running, endFirst, ended } = createRig(4);
    void add(lanes, 'a1', 'a');
    void add(lanes, 'b1', 'b');
    void add(lanes, 'none');
    void add(lanes, 'c1', 'c');
    await settled();
    expect(running()).toEqual([['a1'], ['b1']]);
    void add(lanes, 'a2', 'a');
    await endFirst();
    expect(running()).toEqual([['b1']]);
    await endFirst();
    expect(running()).toEqual([['none', 'c1', 'a2']]);
    void add(lanes, 'd1', 'd');
    await settled();
    expect(running()).toHaveLength(1);
    await endFirst();
    expect(running()).toEqual([['d1']]);
    await endFirst();
    expect(ended).toEqual(['a1', 'b1', 'none', 'c1', 'a2', 'd1']);
  });

  it('run in parallel again after the last write without a key', async () => {
    const { lanes, running, endFirst } = createRig(4);
    void add(lanes, 'none');
    await settled();
    void add(lanes, 'a1', 'a');
    void add(lanes, 'b1', 'b');
    await settled();
    expect(running()).toEqual([['none']]);
    await endFirst();
    expect(running()).toEqual([['a1'], ['b1']]);
  });

  it('bound a transaction and keep the order beyond it', async () => {
    const { lanes, running, endFirst, ended } = createRig(2);
    const names = Array.from({ length: 300 }, (_, index) => `n${index}`);
    for (const name of names) void add(lanes, name);
    await settled();
    while (running().length > 0) {
      expect(running()[0]?.length).toBeLessThanOrEqual(128);
      await endFirst();
    }
    expect(ended).toEqual(names);
    await lanes.idle();
  });
});
