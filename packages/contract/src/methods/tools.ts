import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { AgentId } from '../shared/session.ts';
import { TurnOrigin } from '../shared/turn.ts';

const ToolInfo = once(() =>
  z
    .strictObject({
      name: z.string(),
      description: z.string(),
      source: z.string().describe('`builtin`, or `mcp:<server>`.'),
      risk: z
        .enum(['read', 'outward', 'write'])
        .describe("`read` reads the agent's own data, `outward` reaches out of the machine, `write` changes state."),
      effect: z.enum(['pure', 'idempotent', 'once']),
      timeoutMs: z.int().min(1),
      allowed: z.boolean(),
      refusal: z
        .enum(['explicit_deny', 'not_in_profile', 'origin'])
        .optional()
        .describe('Why it is not allowed: denied by name, not in profile or allow list, or not named for the untrusted origin.'),
      deferred: z.boolean().describe('Shown to the model only when it searches with `discover_tools`.'),
    })
    .meta({ id: 'ToolInfo' }),
);

export const tools = {
  'tools.list': method({
    scope: 'admin',
    risk: 'read',
    summary: "Lists the tools of the installation and an agent's policy for each.",
    description: 'The answer is for turns of one origin: untrusted origins lose tools that write or reach out.',
    params: () =>
      z.strictObject({
        agentId: AgentId.optional().describe('The default agent when absent.'),
        origin: TurnOrigin.exclude(['background']).default('rpc').describe('A background turn has the tools of the turn that started its task.'),
      }),
    result: () => z.strictObject({ tools: z.array(ToolInfo()), total: z.int().min(0) }),
    errors: ['not_found'],
    examples: [
      {
        params: { agentId: 'default', origin: 'v1' },
        result: {
          tools: [
            {
              name: 'read',
              description: 'Shows a file of your workspace folder.',
              source: 'builtin',
              risk: 'read',
              effect: 'pure',
              timeoutMs: 10_000,
              allowed: true,
              deferred: false,
            },
            {
              name: 'exec',
              description: 'Runs a command.',
              source: 'builtin',
              risk: 'write',
              effect: 'once',
              timeoutMs: 300_000,
              allowed: false,
              refusal: 'not_in_profile',
              deferred: false,
            },
          ],
          total: 2,
        },
      },
    ],
    since: '0.1.0',
  }),
};
