import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { AgentId, conversationIdentity } from '../shared/session.ts';
import { FinishReason, TokensUsed } from '../shared/turn.ts';

const measures = once(() => ({
  turnId: z.string(),
  traceId: z.string(),
  model: z.string().nullable().describe('The model that answered last, as provider/modelId; null when none did.'),
  finishReason: FinishReason.nullable(),
  tokensUsed: TokensUsed,
  costUsd: z.number().min(0).nullable().describe('Null when a price is not known.'),
  latencyMs: z.int().min(0).nullable(),
}));

const example = {
  turnId: 'tn_0199e0a0-7c00-7000-8000-000000000002',
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  model: 'local/test-large',
  finishReason: 'stop',
  tokensUsed: { input: 120, output: 9, total: 129 },
  costUsd: 0.00021,
  latencyMs: 840,
} as const;

/** Replays (an extension of json-rpc.md §4 obs). */
export const obsReplay = {
  'obs.trace.replay': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Asks the question of an earlier turn again, of another model or agent, in a fork of its conversation.',
    description:
      'The fork ends before the question and belongs to the caller; it keeps the answer. A replay has no effects outside of it: tools that may change or reach something are refused, with the reason as their result, nobody is asked for an approval, and nothing is learned from it. It is synthetic: its cost counts, but reports leave it out unless asked for. Waits for the answer. Only turns whose conversation is stored can be replayed.',
    params: () =>
      z.strictObject({
        ref: z.string().min(1).max(64).describe('A turn (tn_…), or the id of its trace.'),
        model: z.string().min(1).max(256).optional().describe('As provider/modelId or modelId; it answers alone, without fallbacks.'),
        agentId: AgentId.optional().describe('Another agent; that of the turn otherwise.'),
      }),
    result: () => z.strictObject({ ...conversationIdentity, ...measures(), original: z.strictObject({ ...measures(), agentId: AgentId }) }),
    errors: ['not_found', 'precondition_failed', 'rate_limited', 'unavailable'],
    examples: [
      {
        params: { ref: 'tn_0199e0a0-7c00-7000-8000-000000000001', model: 'local/test-large' },
        result: {
          conversationRef: 'cv_1111111111111111111111111111111111111111111',
          sessionKey: 'ada:desk~4f2a9c',
          agentId: 'default',
          ...example,
          original: {
            ...example,
            turnId: 'tn_0199e0a0-7c00-7000-8000-000000000001',
            traceId: '0af7651916cd43dd8448eb211c80319c',
            agentId: 'default',
            model: 'local/test-model',
          },
        },
      },
    ],
    since: '0.1.0',
  }),
};
