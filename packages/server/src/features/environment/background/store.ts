import type { TurnOrigin } from '@gatehouse/contract';
import { appendAudit, type AuditRow } from '../../../kernel/db/audit.ts';
import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import { ofDeadBoot } from '../../../kernel/owners.ts';
import type { TaskOutcome } from '../../../runtime/background.ts';

/** `telling`: a turn that received the result started to do what must not be repeated, and has not ended. */
export type TaskState = 'running' | 'ended' | 'telling' | 'told';

export interface TaskRow {
  readonly id: string;
  readonly agentId: string;
  readonly conversationRef: string;
  readonly sessionKey: string;
  readonly principalId: string;
  /** Authority of the turn that started the task; looked up again when the result arrives. */
  readonly tokenId: string;
  readonly turnId: string;
  /** Root of the turn; null for tasks of versions that did not record it. */
  readonly rootRunId: string | null;
  readonly traceId: string;
  readonly toolName: string;
  readonly description: string;
  readonly begunBy: TurnOrigin;
  readonly chain: number;
  readonly state: TaskState;
  /** Null while the task runs. */
  readonly outcome: TaskOutcome | 'unknown' | null;
  /** The result as the model sees it; null while the task runs. */
  readonly content: string | null;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  /** The boot that runs it, and then the one that delivers its result. */
  readonly bootId: string;
}

const columns = [
  'id',
  'agentId',
  'conversationRef',
  'sessionKey',
  'principalId',
  'tokenId',
  'turnId',
  'rootRunId',
  'traceId',
  'toolName',
  'description',
  'begunBy',
  'chain',
  'state',
  'outcome',
  'content',
  'startedAtMs',
  'endedAtMs',
  'bootId',
] as const;

const insert = query<TaskRow>(({ db, each }) => db.insertInto('backgroundTask').values(each(columns)));

const prune = query<{ atMs: number }>(({ db, p }) => db.deleteFrom('backgroundTask').where('state', '=', 'told').where('endedAtMs', '<', p('atMs')));

/** Condition for a task whose result is not in the conversation yet. */
export const isOpenTask = `background_task.state <> 'told'`;

/** How long a row is kept after its result is in the conversation. */
const keptMs = 7 * 24 * 60 * 60_000;

/** Records a running task and deletes rows past their retention. */
export const addTask = operation(
  'background.add',
  async (tx, { row, ageNowMs }: { readonly row: TaskRow; readonly ageNowMs: number }): Promise<void> => {
    await tx.run(insert, row);
    await tx.run(prune, { atMs: ageNowMs - keptMs });
  },
);

interface TaskEnd {
  readonly id: string;
  readonly outcome: TaskOutcome;
  readonly content: string;
  readonly atMs: number;
  /** `told` when the requester stopped the task and needs no notification. */
  readonly state: 'ended' | 'told';
}

const end = query<TaskEnd>(({ db, p }) =>
  db
    .updateTable('backgroundTask')
    .set({ state: p('state'), outcome: p('outcome'), content: p('content'), endedAtMs: p('atMs') })
    .where('id', '=', p('id'))
    .where('state', '=', 'running'),
);

/** Returns false when the row is gone because its conversation was reset. */
export const endTask = operation('background.end', async (tx, input: TaskEnd): Promise<boolean> => {
  const { changes } = await tx.run(end, input);
  return changes > 0;
});

const mark = query<{ id: string; state: TaskState }>(({ db, p }) =>
  db
    .updateTable('backgroundTask')
    .set({ state: p('state') })
    .where('id', '=', p('id')),
);

/** Marks the results that a turn received. Called in the turn's own transaction. */
export const markTasks = operation(
  'background.mark',
  async (tx, { ids, state }: { readonly ids: readonly string[]; readonly state: TaskState }): Promise<void> => {
    for (const id of ids) await tx.run(mark, { id, state });
  },
);

const remove = query<{ conversationRef: string }>(({ db, p }) => db.deleteFrom('backgroundTask').where('conversationRef', '=', p('conversationRef')));

/** Deletes tasks and their results. Part of the operations that reset or delete a conversation. */
export async function dropTasks(tx: Tx, conversationRef: string): Promise<void> {
  await tx.run(remove, { conversationRef });
}

const removeOne = query<{ id: string }>(({ db, p }) => db.deleteFrom('backgroundTask').where('id', '=', p('id')));

/** Drops a result that has no recipient. */
export const dropTask = operation('background.drop', async (tx, input: { readonly id: string }): Promise<void> => {
  await tx.run(removeOne, input);
});

const cutOff = query<{ atMs: number; content: string }>(({ db, sql, p }) =>
  db
    .updateTable('backgroundTask')
    .set({ state: 'ended', outcome: 'unknown', content: p('content'), endedAtMs: p('atMs') })
    .where('state', '=', 'running')
    .where(ofDeadBoot(sql, 'backgroundTask.bootId')),
);

const adopt = query<{ bootId: string }>(({ db, sql, p }) =>
  db
    .updateTable('backgroundTask')
    .set({ bootId: p('bootId') })
    .where('state', '<>', 'told')
    .where(ofDeadBoot(sql, 'backgroundTask.bootId')),
);

const untold = query<{ bootId: string }, TaskRow>(({ db, p }) =>
  db.selectFrom('backgroundTask').select(columns).where('state', '<>', 'told').where('bootId', '=', p('bootId')).orderBy('endedAtMs').limit(10_000),
);

/** Marks tasks of dead boots as ended with an unknown outcome, and makes their results those of this boot, which delivers them. Returns all that it has to report. */
export const recoverTasks = operation(
  'background.recover',
  async (tx, { bootId, ...end }: { readonly bootId: string; readonly atMs: number; readonly content: string }): Promise<TaskRow[]> => {
    await tx.run(cutOff, end);
    await tx.run(adopt, { bootId });
    return tx.all(untold, { bootId });
  },
);

const inConversation = query<{ conversationRef: string; limit: number }, TaskRow>(({ db, p }) =>
  db
    .selectFrom('backgroundTask')
    .select(columns)
    .where('conversationRef', '=', p('conversationRef'))
    .orderBy('startedAtMs', 'desc')
    .limit(p('limit')),
);

export const listTasks = operation('background.list', async (tx, input: { readonly conversationRef: string; readonly limit: number }) =>
  tx.all(inConversation, input),
);

const one = query<{ conversationRef: string; id: string }, TaskRow>(({ db, p }) =>
  db.selectFrom('backgroundTask').select(columns).where('id', '=', p('id')).where('conversationRef', '=', p('conversationRef')),
);

export const findTask = operation('background.find', async (tx, input: { readonly conversationRef: string; readonly id: string }) =>
  tx.get(one, input),
);

/** Records that a user stopped background work. */
export const recordStop = operation('background.stop', async (tx, { audit }: { readonly audit: AuditRow }): Promise<void> => {
  await appendAudit(tx, audit);
});

/** Records that a user typed into a terminal session. */
export const recordTyping = operation('background.type', async (tx, { audit }: { readonly audit: AuditRow }): Promise<void> => {
  await appendAudit(tx, audit);
});

export const backgroundOperations = [recordStop, recordTyping, markTasks, addTask, endTask, dropTask, recoverTasks, listTasks, findTask];
