import { once } from '@gatehouse/contract';
import * as z from 'zod';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { AppError } from '../../../kernel/app-error.ts';
import type { Tool } from '../../../runtime/tool.ts';
import { backgroundToolName } from '../../../runtime/tool-policy.ts';
import { findTask, listTasks, type TaskRow } from './store.ts';
import type { Tasks } from './tasks.ts';

const Args = once(() =>
  z.strictObject({
    action: z.enum(['list', 'get', 'cancel']),
    taskId: z.string().max(64).optional().describe('For get and cancel.'),
  }),
);

const listed = 20;

/** Background tool calls; a turn sees and cancels only those in its conversation. */
export function createBackgroundTool({
  db,
  clock,
  tasks,
}: {
  readonly db: Db;
  readonly clock: Clock;
  readonly tasks: Tasks;
}): Tool<ReturnType<typeof Args>> {
  function lineOf({ id, toolName, description, state, outcome, startedAtMs, endedAtMs }: TaskRow): string {
    const seconds = Math.round(((endedAtMs ?? clock.now()) - startedAtMs) / 1000);
    return `${id} ${state === 'running' ? 'running' : (outcome ?? 'unknown')}, ${seconds} s, "${toolName}": ${JSON.stringify(description)}`;
  }

  async function find(id: string | undefined, conversationRef: string): Promise<TaskRow> {
    if (id === undefined) throw new AppError('invalid_params', 'taskId: expected the id of a task', { param: 'taskId' });
    const row = await db.read(findTask, { conversationRef, id });
    if (row === undefined) throw new AppError('not_found', 'Task not found', { param: 'taskId' });
    return row;
  }

  return {
    name: backgroundToolName,
    description: 'Tool calls of this conversation that continue in the background: list them, get the result of one, or cancel one.',
    get args() {
      return Args();
    },
    risk: 'read',
    effect: 'idempotent',
    timeoutMs: 10_000,
    describe: ({ action, taskId }) => (taskId === undefined ? `${action} background tasks` : `${action} background task ${taskId}`),
    async run({ action, taskId }, { conversationRef }) {
      if (action === 'list') {
        const rows = await db.read(listTasks, { conversationRef, limit: listed });
        return { content: rows.length === 0 ? 'No tasks in this conversation.' : rows.map(lineOf).join('\n') };
      }
      const row = await find(taskId, conversationRef);
      if (action === 'get') return { content: row.content === null ? `${lineOf(row)}\nIt has no result yet.` : `${lineOf(row)}\n${row.content}` };
      const live = tasks.find(row.id);
      if (live?.state !== 'running') return { content: `${row.id} has ended already.`, isError: true };
      live.isCancelled = true;
      live.stop('it was cancelled');
      return { content: `${row.id} is cancelled. Its earlier effects remain.` };
    },
  };
}
