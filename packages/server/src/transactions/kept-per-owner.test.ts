import { expect, test } from 'vitest';
import type { GraphRow } from '../features/delegation/graph/rows.ts';
import { addGraph, pruneGraphs } from '../features/delegation/graph/store.ts';
import type { NewRunRow } from '../features/delegation/subagents/run/row.ts';
import { archiveRuns } from '../features/delegation/subagents/run/sweep-store.ts';
import { closeRun, insertRun } from '../features/delegation/subagents/store.ts';
import { operation } from '../kernel/db/operation.ts';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { migrations, operations } from './registry.ts';

const owned = { agentId: 'default', tokenId: 't', definitionJson: '{}', variablesJson: '{}', announceJson: '{}', workId: null, label: null };
const graphOf = (id: string, principalId: string, endedAtMs: number): GraphRow => ({
  ...owned,
  id,
  principalId,
  nodeCount: 0,
  rootRunId: null,
  requesterJson: null,
  byAgent: 0,
  nodeProgress: 0,
  state: 'completed',
  cancelReason: null,
  createdAtMs: 0,
  startedAtMs: 0,
  endedAtMs,
  waitedMs: 0,
});
const runOf = (id: string, principalId: string): NewRunRow => ({
  id,
  principalId,
  rootRunId: 'root-1',
  leaseId: `ls_${id}`,
  parentRunId: null,
  depth: 1,
  agentId: 'default',
  tokenId: 't',
  requesterKey: 't',
  requesterRef: null,
  requesterAgentId: null,
  counted: 0,
  conversationRef: `cv_${id}`,
  sessionKey: id,
  task: 'x',
  optionsJson: '{}',
  graphId: null,
  nodeId: null,
  workId: `wi_${id}`,
  queuedAtMs: 0,
  announceTo: 'none',
  announceRef: null,
  announceTargetJson: null,
  announceRunId: null,
  steeredAtMs: null,
});

const insertGraph = operation('test.graph', (tx, row: GraphRow) => addGraph(tx, row, [], false));
const insertEnded = operation('test.run', async (tx, { row, atMs }: { readonly row: NewRunRow; readonly atMs: number }): Promise<void> => {
  await insertRun(tx, row);
  const said = { errorKind: null, cause: null, summary: null, resultText: null, resultRefJson: null, telemetryJson: null, tainted: 0 };
  await closeRun(tx, { id: row.id, state: 'completed', endReason: 'completed', ...said, atMs });
});

/** A busy owner, whose work ended last, next to one with a single old item. */
const ended: readonly (readonly [string, string, number])[] = [
  ['old', 'token:quiet', 10],
  ['first', 'token:busy', 20],
  ['second', 'token:busy', 30],
  ['third', 'token:busy', 40],
];

test('the newest ended graphs and sub-agents of each owner are kept, however many others there are', async () => {
  await using db = await openInlineDb({ migrations, operations: [...operations, insertGraph, insertEnded] });
  for (const [id, principalId, endedAtMs] of ended) {
    await db.write(insertGraph, graphOf(id, principalId, endedAtMs));
    await db.write(insertEnded, { row: runOf(id, principalId), atMs: endedAtMs });
  }
  const none = { beforeMs: 0, loadedBeforeMs: 0, unannouncedBeforeMs: 0, keysBeforeMs: 0 };
  expect(await db.write(pruneGraphs, { ...none, kept: 2 })).toBe(1);
  expect((await db.write(archiveRuns, { ...none, kept: 2, limit: 10 })).map(({ id }) => id)).toEqual(['first']);
  expect(await db.write(pruneGraphs, { ...none, kept: 1 })).toBe(1);
});
