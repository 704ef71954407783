import { AgentId, ModelName, once } from '@gatehouse/contract';
import * as z from 'zod';
import type { Tool } from '../../../../runtime/tool.ts';
import type { createSpawn } from '../requests/spawn/spawn.ts';

const Line = once(() => z.string().min(1).max(1000));
const Spawn = once(() =>
  z.strictObject({
    task: z.string().min(1).max(100_000).describe('Everything that the sub-agent has to know: it does not see this conversation.'),
    agent: AgentId.optional().describe('One of agents_list; yourself when absent.'),
    model: ModelName.optional(),
    maxSteps: z.int().min(1).max(1000).optional(),
    expectedOutputs: z.array(Line()).max(32).optional().describe('What the result must contain.'),
    artifactRefs: z.array(Line()).max(32).optional().describe('Workspace files that it should read.'),
    objective: Line().optional().describe('The larger goal behind the task.'),
    domainKnowledge: z.array(Line()).max(32).optional(),
    toolGroups: z
      .array(z.string().regex(/^[a-z][a-z0-9_]{0,63}$/))
      .max(16)
      .optional()
      .describe('Groups of tools, such as coding, web, memory.'),
    requiredTools: z.array(z.string().min(1).max(128)).max(32).optional(),
    includeParentHistory: z.enum(['none', 'summary']).optional().describe('`summary`: it receives the latest messages of this conversation.'),
  }),
);

/** Creates `sessions_spawn`: starts a sub-agent in the background. */
export function createSpawnTool(spawn: ReturnType<typeof createSpawn>): Tool<ReturnType<typeof Spawn>> {
  return {
    name: 'sessions_spawn',
    description:
      'Starts a sub-agent that works on a task in the background, with its own conversation. Its result is announced in this conversation automatically when it ends; wait for it with `subagents` only when you cannot continue without it.',
    get args() {
      return Spawn();
    },
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
}
