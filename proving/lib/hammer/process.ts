import type { Db } from '../../../packages/server/src/kernel/db/db.ts';
import { type Random, randomFrom } from '../random.ts';
import { type Side, toOutcome, type Writer } from './driver.ts';
import { drivers } from './drivers.ts';
import { openAt } from './engine.ts';

// One of the two processes of the hammer, so that a fault can be built into it.
const [place = '', sideText = '0', seed = '0'] = process.argv.slice(2);
const side = Number(sideText) as Side;
const db = await openAt(place);
const random = randomFrom(Number(seed) + side);

interface Asked {
  readonly driver: number;
  readonly scene: unknown;
}

process.on('message', ({ driver, scene }: Asked) => {
  const wrong: string[] = [];
  const driven = new Set<string>();
  const writer = createWriter(db, random, { wrong, driven });
  const made = drivers[driver];
  if (made === undefined) throw new RangeError('no such driver');
  made.run(writer, scene as never, side).then(
    (result) => process.send?.({ result, wrong, driven: [...driven] }),
    (error: unknown) => process.send?.({ result: undefined, wrong: [...wrong, String(error)], driven: [...driven] }),
  );
});
process.send?.({ ready: true });

function createWriter(on: Db, from: Random, { wrong, driven }: { readonly wrong: string[]; readonly driven: Set<string> }): Writer {
  async function shuffled<Result>(tasks: readonly (() => Promise<Result>)[]): Promise<readonly Result[]> {
    const order = tasks.map((task, index) => ({ task, index, at: from.next() })).toSorted((a, b) => a.at - b.at);
    const done = await Promise.all(order.map(async ({ task, index }) => ({ index, result: await task() })));
    return done.toSorted((a, b) => a.index - b.index).map(({ result }) => result);
  }

  return {
    side,
    async write(operation, input, allowed = []) {
      driven.add(operation.name);
      for (const name of namesOfCalls(input)) driven.add(name);
      try {
        return { value: await on.write(operation, input) };
      } catch (error) {
        const refused = toOutcome(error);
        if (!allowed.includes(refused.code)) wrong.push(`${operation.name} fails with ${refused.code}: ${refused.message.slice(0, 200)}`);
        return refused;
      }
    },
    read: (operation, input) => on.read(operation, input),
    async telemetry(operation, input) {
      driven.add(operation.name);
      try {
        return { value: await on.telemetry(operation, input) };
      } catch (error) {
        const refused = toOutcome(error);
        wrong.push(`${operation.name} fails with ${refused.code}: ${refused.message.slice(0, 200)}`);
        return refused;
      }
    },
    all: (tasks) => shuffled(tasks),
    race: async (tasks) => void (await shuffled(tasks)),
    wrong: (what) => void wrong.push(what),
  };
}

/** The operations that a turn's commit carries. */
function namesOfCalls(input: unknown): string[] {
  if (typeof input !== 'object' || input === null || !('alongside' in input) || !Array.isArray(input.alongside)) return [];
  return input.alongside.map(({ operation }: { readonly operation: string }) => operation);
}
