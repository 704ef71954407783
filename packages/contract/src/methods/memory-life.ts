import * as z from 'zod';
import { method } from '../method.ts';
import { AgentId } from '../shared/session.ts';

const agentParam = { agentId: AgentId.optional().describe('The default agent otherwise.') };
const count = z.int().min(0);

/** Beyond json-rpc.md §4: nightly tasks of a schedule, run now. */
export const memoryLife = {
  'memory.review': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Reviews the conversations of an agent that changed and stores what is worth remembering; then folds equivalent memories into one.',
    description:
      "One model call per conversation (operation `memoryReview`), by the agent's `memory.review` settings. Findings from conversations with tool results or attachments are stored as `external`, the rest as `learned`, never as `system`. One run per agent at a time. The run ends when the caller leaves; what is stored by then stays. Emits `reflect:funnel`, and `reflect:admitted` when something was stored.",
    params: () => z.strictObject(agentParam),
    result: () =>
      z.strictObject({
        agentId: AgentId,
        conversationsReviewed: count,
        conversationsFailed: count.describe('Conversations whose review failed; a later run retries them.'),
        more: z.boolean().describe('Whether conversations are left for the next run.'),
        extracted: count.describe('Candidates that the model found.'),
        duplicates: count.describe('Candidates that were already known.'),
        rejected: count.describe('Candidates with an invalid format, or refused by the write scan.'),
        admitted: count.describe('Candidates that were stored.'),
        derived: count.describe('Memories that were created from several others.'),
        consolidated: count.describe('Memories that those, or earlier ones, absorbed.'),
        durationMs: count,
      }),
    errors: ['not_found', 'precondition_failed', 'conflict'],
    examples: [
      {
        params: { agentId: 'default' },
        result: {
          agentId: 'default',
          conversationsReviewed: 3,
          conversationsFailed: 0,
          more: false,
          extracted: 7,
          duplicates: 2,
          rejected: 1,
          admitted: 4,
          derived: 1,
          consolidated: 2,
          durationMs: 5200,
        },
      },
    ],
    since: '0.1.0',
  }),
  'memory.lifecycle': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Sweeps the memories of an agent: promotes used ones, demotes fading and harmful ones, evicts those expired or beyond the limits.',
    description:
      'Pinned entries and those of trust `system` stay unchanged, and nothing `external` is promoted. `dryRun: true` shows the plan and changes nothing. One run per agent at a time. Emits `learning:lifecycle_swept`, and `learning:memory_demoted` and `learning:memory_evicted` when there were some.',
    params: () => z.strictObject({ ...agentParam, dryRun: z.boolean().default(false) }),
    result: () =>
      z.strictObject({
        agentId: AgentId,
        dryRun: z.boolean(),
        examined: count,
        promoted: count,
        demoted: count,
        evicted: count,
        more: z.boolean().describe('Whether there is more to do than one sweep does.'),
        actions: z
          .array(
            z.strictObject({
              id: z.string(),
              kind: z.enum(['promote', 'demote', 'evict']),
              reason: z.enum(['used', 'faded', 'failures', 'expired', 'too_old', 'too_many']),
            }),
          )
          .describe('The first hundred planned actions.'),
        durationMs: count,
      }),
    errors: ['not_found', 'conflict'],
    examples: [
      {
        params: { agentId: 'default', dryRun: true },
        result: {
          agentId: 'default',
          dryRun: true,
          examined: 1200,
          promoted: 0,
          demoted: 0,
          evicted: 1,
          more: false,
          actions: [{ id: '3f0c9a52-7d0e-4f53-9d37-2f8c8e3b6a10', kind: 'evict', reason: 'expired' }],
          durationMs: 40,
        },
      },
    ],
    since: '0.1.0',
  }),
};
