import { executionKinds } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { isAdmin, ownerOf } from '../../../kernel/call-context.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { type ExecutionRow, listExecutions } from './store.ts';

const deliveriesAreForAdmins = executionKinds.filter((kind) => kind !== 'delivery');

export interface ExecutionsDeps {
  readonly db: Db;
  /** Returns what these roots do: the tasks of their first sub-agents. */
  readonly readRootTasks: Operation<{ readonly rootRunIds: readonly string[] }, ReadonlyMap<string, string>>;
}

/** Implements `run.executions`: the tables of runs, graphs, jobs and deliveries as one list. */
export function createExecutions({ db, readRootTasks }: ExecutionsDeps): HandlersOf<'run.executions'> {
  return {
    'run.executions': async ({ kind, state, agentId, limit, before }, call) => {
      if (call.agentCaller !== undefined) throw new AppError('denied', 'run.executions is for people, not for agents');
      const allowed = isAdmin(call) ? executionKinds : deliveriesAreForAdmins;
      const agents = call.identity.agents ?? null;
      const rows = await db.read(listExecutions, {
        principalId: isAdmin(call) ? null : ownerOf(call),
        agentIds: agentId === undefined ? agents : agents === null || agents.includes(agentId) ? [agentId] : [],
        kinds: allowed.filter((one) => kind === undefined || one === kind),
        state,
        before: before === undefined ? undefined : readCursor(before),
        limit: limit + 1,
      });
      const shown = rows.slice(0, limit);
      // Tasks are texts of agents: `run.list` shows them to admins only, too.
      const rootRunIds = isAdmin(call) ? shown.filter((row) => row.kind === 'run').map(({ id }) => id) : [];
      const tasks = rootRunIds.length === 0 ? undefined : await db.read(readRootTasks, { rootRunIds });
      return {
        executions: shown.map((row) => viewOf(row.kind === 'run' ? { ...row, name: tasks?.get(row.id) ?? null } : row)),
        hasMore: rows.length > limit,
      };
    },
  };
}

function readCursor(cursor: string): { readonly startedAt: number; readonly id: string } {
  const at = cursor.indexOf(':');
  return { startedAt: Number(cursor.slice(0, at)), id: cursor.slice(at + 1) };
}

function viewOf({ name, endedAt, errorKind, rootRunId, jobId, ...row }: ExecutionRow) {
  return {
    ...row,
    cursor: `${row.startedAt}:${row.id}`,
    ...(name !== null && { name }),
    ...(endedAt !== null && { endedAt }),
    ...(errorKind !== null && { errorKind }),
    ...(rootRunId !== null && { rootRunId }),
    ...(jobId !== null && { jobId }),
  };
}
