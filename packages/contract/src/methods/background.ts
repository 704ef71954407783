import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { AgentId, ConversationRef } from '../shared/session.ts';
import { RootRunId } from '../shared/sub-agent.ts';
import { EpochMs } from '../shared/turn.ts';

const id = 'cmd_00000000-0000-7000-8000-000000000001';

/** A command of `exec`, or a tool call, that runs while no turn waits for it. */
export const BackgroundItem = once(() =>
  z
    .strictObject({
      id: z.string().min(1).max(64),
      kind: z.enum(['command', 'call']).describe('`command`: started by `exec` with `background`; `call`: a tool call that outlasted its turn.'),
      agentId: AgentId,
      conversationRef: ConversationRef,
      rootRunId: RootRunId().describe('`run.kill` and `lease.revoke` of this root stop it.'),
      runId: z.string().optional().describe('The sub-agent run that started it.'),
      description: z.string().describe('The command line, or the tool and its task.'),
      startedAt: EpochMs,
    })
    .meta({ id: 'BackgroundItem' }),
);
export type BackgroundItem = z.output<ReturnType<typeof BackgroundItem>>;

export const background = {
  'background.list': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists commands and tool calls in the background, newest first: those of the caller, of everybody for an admin.',
    params: () => z.strictObject({ agentId: AgentId.optional() }),
    result: () => z.strictObject({ items: z.array(BackgroundItem()), total: z.int().min(0).describe('Length of `items`.') }),
    examples: [{ params: {}, result: { items: [], total: 0 } }],
    since: '0.1.0',
  }),
  'background.stop': method({
    scope: 'rpc',
    risk: 'destructive',
    summary: 'Stops a background command with all its processes, or a background tool call.',
    params: () => z.strictObject({ id: z.string().min(1).max(64) }),
    result: () => z.strictObject({ id: z.string(), stopped: z.literal(true) }),
    errors: ['not_found'],
    examples: [{ params: { id }, result: { id, stopped: true } }],
    since: '0.1.0',
  }),
};
