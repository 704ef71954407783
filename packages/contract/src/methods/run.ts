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

export const run = {
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
