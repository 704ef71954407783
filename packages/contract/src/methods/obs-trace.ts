import * as z from 'zod';
import { method } from '../method.ts';
import { TraceRecord } from '../shared/trace.ts';

export const obsTrace = {
  'obs.trace.get': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns what a turn did, step by step, with the turns of the sub-agents and graph nodes that it started.',
    description:
      'Oldest record first; a running turn has no end yet. Callers with scope `rpc` see their own conversations, without the sentences of model providers; ' +
      '`admin` sees everything. A token limited to some agents sees only their records.',
    params: () =>
      z.strictObject({
        ref: z
          .string()
          .min(1)
          .max(512)
          .describe(
            'Id of a turn, a record, a trace, a root run, a sub-agent run or a graph; or the reference or session key of a conversation, for its newest turn.',
          ),
      }),
    result: () =>
      z.strictObject({
        records: z.array(TraceRecord()),
        truncated: z.boolean().describe('There are more records than are returned: 1000.'),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { ref: 'tn_0199e0a0-7c00-7000-8000-000000000001' },
        result: {
          records: [
            {
              id: 'tn_0199e0a0-7c00-7000-8000-000000000001',
              kind: 'turn',
              traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
              agentId: 'default',
              principalId: 'token:ops',
              origin: 'rpc',
              startedAtMs: 1_790_000_000_000,
              endedAtMs: 1_790_000_001_200,
              outcome: 'ok',
              endReason: 'stop',
              error: null,
              model: 'local/test-model',
              modelCalls: 1,
              toolCalls: 0,
              toolErrors: 0,
              tokens: { in: 900, out: 60, cached: 0, cacheWritten: 0 },
              costNano: 1_020_000,
              synthetic: false,
              refs: {},
              facts: { steps: 1, tainted: false },
              steps: [
                {
                  id: 0,
                  kind: 'model',
                  name: 'local/test-model',
                  at: 1,
                  ms: 1190,
                  outcome: 'ok',
                  tokens: { in: 900, out: 60, cached: 0, cacheWritten: 0 },
                  costNano: 1_020_000,
                },
              ],
              droppedSteps: 0,
            },
          ],
          truncated: false,
        },
      },
    ],
    since: '0.1.0',
  }),
};
