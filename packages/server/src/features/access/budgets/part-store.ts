import { query, type Tx } from '../../../kernel/db/operation.ts';
import type { PartOfWork } from './api.ts';

interface PartRow {
  readonly rootRunId: string | null;
  readonly runId: string | null;
  readonly graphId: string | null;
  readonly nodeId: string | null;
}

const insert = query<PartRow & { workId: string }>(({ db, each }) =>
  db.insertInto('workPart').values(each(['workId', 'rootRunId', 'runId', 'graphId', 'nodeId'])),
);

/** Stores what running work is a part of, for a daemon that ends it without its journal. Part of `openWork`. */
export async function addWorkPart(tx: Tx, { workId, rootRunId, runId, node }: PartOfWork & { readonly workId: string }): Promise<void> {
  await tx.run(insert, { workId, rootRunId: rootRunId ?? null, runId: runId ?? null, graphId: node?.graphId ?? null, nodeId: node?.nodeId ?? null });
}

const drop = query<{ workId: string }>(({ db, p }) => db.deleteFrom('workPart').where('workId', '=', p('workId')));

/** Part of `bookWork`. */
export async function dropWorkPart(tx: Tx, workId: string): Promise<void> {
  await tx.run(drop, { workId });
}

const byWork = query<{ workId: string }, PartRow>(({ db, p }) =>
  db.selectFrom('workPart').select(['rootRunId', 'runId', 'graphId', 'nodeId']).where('workId', '=', p('workId')),
);

/** Returns what work is a part of, and deletes it. Part of `abortOpenTurns`. */
export async function takeWorkPart(tx: Tx, workId: string): Promise<PartOfWork> {
  const row = await tx.get(byWork, { workId });
  if (row === undefined) return {};
  await dropWorkPart(tx, workId);
  const { rootRunId, runId, graphId, nodeId } = row;
  return {
    ...(rootRunId !== null && { rootRunId }),
    ...(runId !== null && { runId }),
    ...(graphId !== null && nodeId !== null && { node: { graphId, nodeId } }),
  };
}
