import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { pageParams, pageResult } from '../shared/paging.ts';
import { AgentId, ConversationRef } from '../shared/session.ts';
import { RootRunId } from '../shared/sub-agent.ts';
import { EpochMs, TurnOrigin } from '../shared/turn.ts';
import { FailureCause, WorkWaiting } from '../shared/waiting.ts';

const rootRunId = 'root-turn-tn_00000000-0000-7000-8000-000000000001';

export const rootRunStates = ['active', 'completed', 'failed', 'revoked', 'orphaned'] as const;

/** Everything that one request started, including sub-agents and graphs. */
export const RootRun = once(() =>
  z
    .strictObject({
      rootRunId: RootRunId(),
      agentId: AgentId,
      origin: TurnOrigin,
      conversationRef: ConversationRef.nullable(),
      profile: z.string().describe('The current profile: `standard` after `autonomy.evict`.'),
      evicted: z.boolean(),
      state: z.enum(rootRunStates),
      startedAt: EpochMs,
      heartbeatAt: EpochMs,
      endedAt: EpochMs.optional(),
      runs: z
        .strictObject({ open: z.int().min(0), completed: z.int().min(0), failed: z.int().min(0) })
        .describe('Sub-agent runs; `open` counts queued and running ones.'),
      graphs: z.int().min(0).describe('Graphs that belong to it.'),
      tokens: z.int().min(0),
      cost: z.number().min(0).nullable().describe('US dollars; null when the price of a call is unknown.'),
      task: z
        .string()
        .optional()
        .describe(
          'Label of its graph, or the beginning of the task of its first sub-agent, while these are listed; only for tokens with scope `admin`.',
        ),
      cause: FailureCause().optional().describe('Cause of the last failed sub-agent; only for tokens with scope `admin`.'),
      waiting: WorkWaiting().optional().describe('Set while the run, or one of its sub-agents, waits.'),
    })
    .meta({ id: 'RootRun' }),
);
export type RootRun = z.output<ReturnType<typeof RootRun>>;

export const executionKinds = ['run', 'graph', 'job', 'delivery'] as const;
export const executionStates = ['active', 'completed', 'failed', 'stopped', 'skipped', 'unknown'] as const;
const cursorPattern = /^\d{1,16}:[A-Za-z0-9_.-]{1,300}$/;

/** One execution, whatever started it. */
export const ListedExecution = once(() =>
  z
    .strictObject({
      kind: z.enum(executionKinds),
      id: z.string().describe('Root run, graph run, run of a job or delivery.'),
      name: z
        .string()
        .optional()
        .describe(
          'Label of the graph, name of the job, id of the mapping; of a run the beginning of its task while that is listed, for tokens with scope `admin`.',
        ),
      agentId: AgentId,
      state: z.enum(executionStates),
      startedBy: z.string().describe('Origin of a run or graph, trigger of a job, `webhook` of a delivery.'),
      startedAt: EpochMs,
      endedAt: EpochMs.optional(),
      errorKind: z.string().optional(),
      rootRunId: RootRunId().optional(),
      jobId: z.string().optional(),
      cursor: z.string(),
    })
    .meta({ id: 'ListedExecution' }),
);
export type ListedExecution = z.output<ReturnType<typeof ListedExecution>>;

export const run = {
  'run.executions': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists runs, graphs, runs of jobs and webhook deliveries in one list, newest first: those of the caller, or all for an admin.',
    description:
      'An extension of the specification. Root runs that belong to a job, to a delivery or to a graph are listed as that. Deliveries are for tokens with scope `admin`. Agents cannot call it.',
    params: () =>
      z.strictObject({
        kind: z.enum(executionKinds).optional(),
        state: z.enum(executionStates).optional(),
        agentId: AgentId.optional(),
        limit: z.int().min(1).max(200).default(50),
        before: z
          .string()
          .regex(cursorPattern, 'expected the cursor of an execution')
          .optional()
          .describe('`cursor` of the last one of the previous page.'),
      }),
    result: () => z.strictObject({ executions: z.array(ListedExecution()), hasMore: z.boolean() }),
    errors: ['denied'],
    examples: [
      {
        params: { kind: 'job', limit: 1 },
        result: {
          executions: [
            {
              kind: 'job',
              id: 'ce_0198c5f3-1111-7c3e-9a52-3d1b8c7e4f10',
              name: 'morning report',
              agentId: 'default',
              state: 'completed',
              startedBy: 'scheduled',
              startedAt: 1_790_000_000_004,
              endedAt: 1_790_000_002_004,
              rootRunId: 'root-cron-ce_0198c5f3-1111-7c3e-9a52-3d1b8c7e4f10',
              jobId: 'cj_0198c5f2-6f0a-7c3e-9a52-3d1b8c7e4f10',
              cursor: '1790000000004:ce_0198c5f3-1111-7c3e-9a52-3d1b8c7e4f10',
            },
          ],
          hasMore: true,
        },
      },
    ],
    since: '0.1.0',
  }),
  'run.list': method({
    scope: 'rpc',
    risk: 'read',
    summary:
      'Lists root runs, newest first: those of the caller, or all for an admin. A turn that delegated nothing is listed while it runs or waits.',
    params: () =>
      z.strictObject({
        state: z.enum(rootRunStates).optional(),
        ...pageParams({ defaultLimit: 50, maxLimit: 200 }),
      }),
    result: () => z.strictObject({ runs: z.array(RootRun()), ...pageResult }),
    examples: [{ params: {}, result: { runs: [], total: 0, offset: 0, limit: 50, hasMore: false } }],
    since: '0.1.0',
  }),
  'run.kill': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Stops a root run at once: its turn, graphs, scripts, all sub-agents, and its leases.',
    params: () => z.strictObject({ rootRunId: RootRunId() }),
    result: () => z.strictObject({ killed: z.int().min(0).describe('Runs that were stopped, including the root.') }),
    errors: ['not_found', 'precondition_failed'],
    examples: [{ params: { rootRunId }, result: { killed: 4 } }],
    since: '0.1.0',
  }),
};
