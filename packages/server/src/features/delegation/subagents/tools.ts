import { AgentId, ModelName } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { AgentToAgentConfig } from './config.ts';
import { findRuns, listRuns } from './status/list-store.ts';
import type { SubagentMethods } from './methods.ts';
import { failureNote, resultOf } from './completion/announcement-text.ts';
import { reachOf, unknownRun } from './status/reach.ts';
import { headOf } from '../../../kernel/cut-text.ts';
import type { Results } from './completion/results.ts';
import { isEnded, type RunRow } from './run/row.ts';
import type { createSpawn } from './requests/spawn.ts';
import type { createWait } from './status/wait.ts';
import { runtimeOf } from './status/view.ts';

export interface ToolDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly config: AgentToAgentConfig;
  readonly agents: Pick<AgentsApi, 'list' | 'find'>;
  readonly results: Pick<Results, 'wholeOf'>;
  readonly methods: SubagentMethods;
  readonly spawn: ReturnType<typeof createSpawn>;
  readonly wait: ReturnType<typeof createWait>;
}

const Line = z.string().min(1).max(1000);
const Spawn = z.strictObject({
  task: z.string().min(1).max(100_000).describe('Everything that the sub-agent has to know: it does not see this conversation.'),
  agent: AgentId.optional().describe('One of agents_list; yourself when absent.'),
  model: ModelName.optional(),
  maxSteps: z.int().min(1).max(1000).optional(),
  expectedOutputs: z.array(Line).max(32).optional().describe('What the result must contain.'),
  artifactRefs: z.array(Line).max(32).optional().describe('Workspace files that it should read.'),
  objective: Line.optional().describe('The larger goal behind the task.'),
  domainKnowledge: z.array(Line).max(32).optional(),
  toolGroups: z
    .array(z.string().regex(/^[a-z][a-z0-9_]{0,63}$/))
    .max(16)
    .optional()
    .describe('Groups of tools, such as coding, web, memory.'),
  requiredTools: z.array(z.string().min(1).max(128)).max(32).optional(),
  includeParentHistory: z.enum(['none', 'summary']).optional().describe('`summary`: it receives the latest messages of this conversation.'),
});
const Control = z.strictObject({
  action: z.enum(['list', 'wait', 'kill', 'steer']),
  runIds: z.array(z.string().min(1).max(64)).min(1).max(32).optional().describe('For wait; all running ones when absent.'),
  timeoutMs: z.int().min(0).max(300_000).optional().describe('For wait, in milliseconds.'),
  target: z.string().min(1).max(64).optional().describe('Id of the run, for kill and steer.'),
  message: z.string().min(1).max(100_000).optional().describe('For steer: the new direction.'),
});
const Read = z.strictObject({
  runId: z.string().min(1).max(64),
  offset: z.int().min(0).default(0).describe('Characters to skip.'),
  limit: z.int().min(1).max(20_000).default(8000).describe('Characters.'),
});

const outsideOf = (rows: readonly Pick<RunRow, 'tainted'>[]) => ({ source: 'sub-agent', clean: rows.every(({ tainted }) => tainted === 0) });
const listed = 50;
const listedMinutes = 24 * 60;
/** Characters of all results that one wait shows. */
const waitCharacters = 32_000;
const shownTask = 120;

/** `sessions_spawn`, `subagents`, `agents_list` and `read_result`: an agent starts, sees and stops only what its own conversation requested. */
export function createSubagentTools({ db, clock, config, agents, results, methods, spawn, wait }: ToolDeps): readonly Tool[] {
  const spawning: Tool<typeof Spawn> = {
    name: 'sessions_spawn',
    description:
      'Starts a sub-agent that works on a task in the background, with its own conversation. Its result is announced in this conversation automatically when it ends; wait for it with `subagents` only when you cannot continue without it.',
    args: Spawn,
    // Spawning has no effect on its own: the sub-agent's calls pass the same gate, with the taint of the task.
    risk: 'outward',
    destination: () => ({ kind: 'configured' }),
    effect: 'idempotent',
    timeoutMs: 30_000,
    capability: 'orch:spawn',
    describe: ({ task, agent }) => `start a sub-agent${agent === undefined ? '' : ` (${agent})`}: ${task}`,
    async run(args, { call, callId, turnId, tainted }) {
      // A call that is retried after a crash is the same run.
      const given = Object.fromEntries(Object.entries(args).filter(([, value]) => value !== undefined));
      const { runId, queued } = await spawn({ ...given, task: args.task, operationId: `${turnId}:${callId}` }, call, tainted());
      const how = queued === true ? 'is waiting for a slot' : 'has started';
      return { content: `Sub-agent ${runId} ${how}. Its result will be announced in this conversation automatically; do not start it again.` };
    },
  };

  const control: Tool<typeof Control> = {
    name: 'subagents',
    description: 'Manages the sub-agents of this conversation: list them, wait for their results, stop one, or steer one in a new direction.',
    args: Control,
    risk: 'read',
    effect: 'idempotent',
    timeoutMs: 310_000,
    describe: ({ action, target }) => (target === undefined ? `${action} sub-agents` : `${action} sub-agent ${target}`),
    async run({ action, runIds, timeoutMs, target, message }, { call }) {
      switch (action) {
        case 'list':
          return list(
            await db.read(listRuns, {
              ...reachOf(call),
              agentId: null,
              rootRunId: null,
              sinceMs: clock.now() - listedMinutes * 60_000,
              limit: listed,
            }),
          );
        case 'wait': {
          const { results, rows } = await wait(runIds, timeoutMs ?? config.waitTimeoutMs, call);
          return waited(results, rows);
        }
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

  function list(rows: readonly RunRow[]) {
    if (rows.length === 0) return { content: 'There are no sub-agents.' };
    const lines = rows.map((row) => {
      const seconds = Math.round(runtimeOf(row, clock.now()) / 1000);
      const how = row.state === 'failed' ? `failed (${row.errorKind ?? row.endReason ?? 'unknown'})` : row.state;
      return `${row.id} ${how}, ${seconds} s, agent ${row.agentId}: ${JSON.stringify(headOf(row.task, shownTask))}`;
    });
    return { content: lines.join('\n'), outside: outsideOf(rows) };
  }

  function waited(results: Awaited<ReturnType<typeof wait>>['results'], rows: readonly RunRow[]) {
    if (results.length === 0) return { content: 'No sub-agents are running.' };
    const ended = new Map(rows.filter(isEnded).map((row) => [row.id, row]));
    const room = Math.floor(waitCharacters / Math.max(1, ended.size));
    const parts = results.map(({ runId, status }) => {
      const row = ended.get(runId);
      if (row === undefined) return `${runId}: ${status === 'timeout' ? 'has not ended yet' : status}`;
      if (row.state !== 'completed') return failureNote(row);
      const { text, more } = resultOf(row, config.subagentContext.maxResultTokens, room);
      return [`${runId} completed:`, text, ...(more === undefined ? [] : [more])].join('\n');
    });
    return { content: parts.join('\n\n'), outside: outsideOf([...ended.values()]) };
  }

  const agentList: Tool = {
    name: 'agents_list',
    description: 'Lists the agents that sessions_spawn can start.',
    args: z.strictObject({}),
    risk: 'read',
    readsPrivate: false,
    effect: 'pure',
    timeoutMs: 10_000,
    async run(_, { agentId, call }) {
      const may = agents
        .list()
        .filter(({ id, suspended }) => !suspended && (call.identity.agents?.includes(id) ?? true))
        .filter(({ id }) => id === agentId || config.allowAgents.length === 0 || config.allowAgents.includes(id));
      return { content: may.map(({ id, config: { name } }) => `${id}: ${name}${id === agentId ? ' (you)' : ''}`).join('\n') };
    },
  };

  const reading: Tool<typeof Read> = {
    name: 'read_result',
    description: 'Reads the whole result of a sub-agent of this conversation, in parts.',
    args: Read,
    risk: 'read',
    effect: 'pure',
    timeoutMs: 10_000,
    describe: ({ runId }) => `read the result of ${runId}`,
    async run({ runId, offset, limit }, { call }) {
      const [row] = await db.read(findRuns, { ...reachOf(call), ids: [runId] });
      if (row === undefined) throw unknownRun(runId);
      if (!isEnded(row)) throw new AppError('precondition_failed', 'runId: it has not ended yet', { param: 'runId' });
      const text = await results.wholeOf(row);
      const part = headOf(text.slice(offset), limit);
      const left = Math.max(0, text.length - offset - part.length);
      return {
        content: `${part}\n[characters ${offset} to ${offset + part.length} of ${text.length}${left === 0 ? '' : `, ${left} more`}]`,
        outside: outsideOf([row]),
      };
    },
  };

  return [spawning, control, agentList, reading];
}

function needed(name: string, value: string | undefined): string {
  if (value === undefined) throw new AppError('invalid_params', `${name}: expected a value for this action`, { param: name });
  return value;
}
