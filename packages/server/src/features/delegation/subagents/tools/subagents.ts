import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { headOf } from '../../../../kernel/cut-text.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Tool } from '../../../../runtime/tool.ts';
import { failureNote, resultOf } from '../completion/announcement-text.ts';
import type { AgentToAgentConfig } from '../config.ts';
import type { Live } from '../../../../kernel/config/live.ts';
import type { SubagentMethods } from '../methods.ts';
import { isEnded, type RunRow } from '../run/row.ts';
import { listRuns } from '../status/list-store.ts';
import { reachOf } from '../status/reach.ts';
import { runtimeOf } from '../status/view.ts';
import type { createWait } from '../status/wait.ts';
import { outsideOf } from './outside.ts';

type Wait = ReturnType<typeof createWait>;

export interface ControlDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly config: Live<AgentToAgentConfig>;
  readonly methods: Pick<SubagentMethods, 'subagent.kill' | 'subagent.steer'>;
  readonly wait: Wait;
}

const Control = once(() =>
  z.strictObject({
    action: z.enum(['list', 'wait', 'kill', 'steer']),
    runIds: z.array(z.string().min(1).max(64)).min(1).max(32).optional().describe('For wait; all running ones when absent.'),
    timeoutMs: z.int().min(0).max(300_000).optional().describe('For wait, in milliseconds.'),
    target: z.string().min(1).max(64).optional().describe('Id of the run, for kill and steer.'),
    message: z.string().min(1).max(100_000).optional().describe('For steer: the new direction.'),
  }),
);

const maxListed = 50;
const listedMinutes = 24 * 60;
/** Characters of all results that one wait shows. */
const waitCharacters = 32_000;
const shownTask = 120;

/** Creates `subagents`: an agent sees and stops only what its own conversation requested. */
export function createControlTool({ db, clock, config, methods, wait }: ControlDeps): Tool<ReturnType<typeof Control>> {
  const recent = (call: CallContext) =>
    db.read(listRuns, { ...reachOf(call), agentId: null, rootRunId: null, sinceMs: clock.now() - listedMinutes * 60_000, limit: maxListed });

  return {
    name: 'subagents',
    description: 'Manages the sub-agents of this conversation: list them, wait for their results, stop one, or steer one in a new direction.',
    get args() {
      return Control();
    },
    risk: 'read',
    effect: 'idempotent',
    timeoutMs: 310_000,
    describe: ({ action, target }) => (target === undefined ? `${action} sub-agents` : `${action} sub-agent ${target}`),
    async run({ action, runIds, timeoutMs, target, message }, { call }) {
      switch (action) {
        case 'list':
          return listed(await recent(call), clock.now());
        case 'wait':
          return awaited(await wait(runIds, timeoutMs ?? config.current.waitTimeoutMs, call), config.current.subagentContext.maxResultTokens);
        case 'kill':
          await methods['subagent.kill']({ target: needed('target', target) }, call);
          return { content: `Sub-agent ${target} and everything that it delegated was stopped.` };
        case 'steer': {
          const done = await methods['subagent.steer']({ target: needed('target', target), message: needed('message', message) }, call);
          return {
            content:
              done.status === 'steered'
                ? `Sub-agent ${done.oldRunId} was stopped; ${done.newRunId} replaces it.`
                : 'The message will be part of its next step.',
          };
        }
      }
    },
  };
}

function listed(rows: readonly RunRow[], nowMs: number) {
  if (rows.length === 0) return { content: 'There are no sub-agents.' };
  const lines = rows.map((row) => {
    const seconds = Math.round(runtimeOf(row, nowMs) / 1000);
    const how = row.state === 'failed' ? `failed (${row.errorKind ?? row.endReason ?? 'unknown'})` : row.state;
    return `${row.id} ${how}, ${seconds} s, agent ${row.agentId}: ${JSON.stringify(headOf(row.task, shownTask))}`;
  });
  return { content: lines.join('\n'), outside: outsideOf(rows) };
}

function awaited({ results, rows }: Awaited<ReturnType<Wait>>, maxResultTokens: number) {
  if (results.length === 0) return { content: 'No sub-agents are running.' };
  const ended = new Map(rows.filter(isEnded).map((row) => [row.id, row]));
  const capacity = Math.floor(waitCharacters / Math.max(1, ended.size));
  const parts = results.map(({ runId, status }) => {
    const row = ended.get(runId);
    if (row === undefined) return `${runId}: ${status === 'timeout' ? 'has not ended yet' : status}`;
    if (row.state !== 'completed') return failureNote(row);
    const { text, more } = resultOf(row, maxResultTokens, capacity);
    return [`${runId} completed:`, text, ...(more === undefined ? [] : [more])].join('\n');
  });
  return { content: parts.join('\n\n'), outside: outsideOf([...ended.values()]) };
}

function needed(name: string, value: string | undefined): string {
  if (value === undefined) throw new AppError('invalid_params', `${name}: expected a value for this action`, { param: name });
  return value;
}
