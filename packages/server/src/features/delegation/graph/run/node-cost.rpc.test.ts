import { expect, test } from 'vitest';
import type { Db } from '../../../../kernel/db/db.ts';
import { type Nodes, openGraphs } from '../testing/open-graphs.ts';

/** Counts the operations of a database by name. */
function counting() {
  const counts = new Map<string, number>();
  const count = (kind: string, name: string) => counts.set(`${kind} ${name}`, (counts.get(`${kind} ${name}`) ?? 0) + 1);
  const wrap = (db: Db): Db => ({
    ...db,
    read: (operation, input) => (count('read', operation.name), db.read(operation, input)),
    write: (operation, input) => (count('write', operation.name), db.write(operation, input)),
  });
  return { counts, wrap };
}

const layers = 5;
const width = 4;
const nodes: Nodes = Array.from({ length: layers * width }, (_, index) => ({
  node_id: `n${index}`,
  task: `Task ${index}`,
  ...(index >= width && { depends_on: [`n${index - width}`] }),
}));

test('a node of a graph costs two writes for its turn, two for its run and two for itself, and no read', async () => {
  const { counts, wrap } = counting();
  await using server = await openGraphs({ db: wrap });
  server.provider.setAnswer(() => ({ text: 'Done.' }));
  counts.clear();
  const ended = server.heard('graph:completed');
  await server.execute(nodes);
  // A poll of its status would read.
  await expect.poll(() => (server.clock.advance(1), ended)).toMatchObject([{ status: 'completed' }]);
  const often = [...counts].filter(([, count]) => count >= nodes.length / 2);
  expect(Object.fromEntries(often.map(([name, count]) => [name, Math.round(count / nodes.length)]))).toEqual({
    'write subagents.accept': 1,
    'write subagents.begin': 1,
    'write turns.openDurable': 1,
    'write turns.commitDurable': 1,
    'write graph.move': 2,
  });
});
