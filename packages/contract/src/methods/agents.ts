import * as z from 'zod';
import { method } from '../method.ts';
import { AgentConfig, AgentConfigPatch } from '../shared/agent-config.ts';
import { AgentId } from '../shared/session.ts';

const exampleConfig = { name: 'Scout', model: 'local/test-model', maxSteps: 20 };

export const agents = {
  'agents.list': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists the ids of all agents.',
    params: () => z.strictObject({}),
    result: () => z.strictObject({ agents: z.array(AgentId) }),
    examples: [{ params: {}, result: { agents: ['default'] } }],
    since: '0.1.0',
  }),
  'agents.create': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Creates an agent, stored and usable at once.',
    description: 'Emits `agent:hot_added`. The workspace folder is created on first use.',
    params: () => z.strictObject({ agentId: AgentId, config: AgentConfig.optional() }),
    result: () => z.strictObject({ agentId: AgentId, config: AgentConfig, created: z.literal(true), workspaceDir: z.string() }),
    errors: ['conflict'],
    examples: [
      {
        params: { agentId: 'scout', config: exampleConfig },
        result: { agentId: 'scout', config: exampleConfig, created: true, workspaceDir: '/home/ada/.gatehouse/workspaces/scout' },
      },
    ],
    since: '0.1.0',
  }),
  'agents.get': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns the effective configuration of one agent.',
    params: () => z.strictObject({ agentId: AgentId }),
    result: () =>
      z.strictObject({
        agentId: AgentId,
        config: AgentConfig,
        source: z.enum(['file', 'stored']),
        suspended: z.boolean(),
        isDefault: z.boolean(),
        workspaceDir: z.string(),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { agentId: 'scout' },
        result: {
          agentId: 'scout',
          config: exampleConfig,
          source: 'stored',
          suspended: false,
          isDefault: false,
          workspaceDir: '/home/ada/.gatehouse/workspaces/scout',
        },
      },
    ],
    since: '0.1.0',
  }),
  'agents.update': method({
    scope: 'admin',
    risk: 'mutate',
    summary: "Changes some keys of an agent's configuration, effective from its next turn.",
    description:
      '`dryRun: true` validates and returns the merged configuration; nothing is stored or applied. An agent of config.yaml keeps its file entry: the change is stored separately and overrides it.',
    params: () => z.strictObject({ agentId: AgentId, config: AgentConfigPatch, dryRun: z.boolean().default(false) }),
    result: () => z.strictObject({ agentId: AgentId, config: AgentConfig, updated: z.boolean(), dryRun: z.literal(true).optional() }),
    errors: ['not_found'],
    examples: [
      {
        params: { agentId: 'scout', config: { maxSteps: 40 } },
        result: { agentId: 'scout', config: { ...exampleConfig, maxSteps: 40 }, updated: true },
      },
      {
        params: { agentId: 'scout', config: { maxSteps: 40 }, dryRun: true },
        result: { agentId: 'scout', config: { ...exampleConfig, maxSteps: 40 }, updated: false, dryRun: true },
      },
    ],
    since: '0.1.0',
  }),
  'agents.delete': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Deletes a stored agent; its conversations stay, new turns for it fail.',
    description: 'Emits `agent:hot_removed`. The default agent cannot be deleted, nor one that config.yaml defines: remove it from the file instead.',
    params: () => z.strictObject({ agentId: AgentId }),
    result: () => z.strictObject({ agentId: AgentId, deleted: z.literal(true) }),
    errors: ['not_found', 'precondition_failed'],
    examples: [{ params: { agentId: 'scout' }, result: { agentId: 'scout', deleted: true } }],
    since: '0.1.0',
  }),
  'agents.suspend': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Stops an agent from accepting new turns; the state survives a restart.',
    description: 'A running turn completes; queued ones fail when they would start.',
    params: () => z.strictObject({ agentId: AgentId }),
    result: () => z.strictObject({ agentId: AgentId, suspended: z.literal(true) }),
    errors: ['not_found', 'precondition_failed'],
    examples: [{ params: { agentId: 'scout' }, result: { agentId: 'scout', suspended: true } }],
    since: '0.1.0',
  }),
  'agents.resume': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Lets a suspended agent accept turns again.',
    params: () => z.strictObject({ agentId: AgentId }),
    result: () => z.strictObject({ agentId: AgentId, resumed: z.literal(true) }),
    errors: ['not_found', 'precondition_failed'],
    examples: [{ params: { agentId: 'scout' }, result: { agentId: 'scout', resumed: true } }],
    since: '0.1.0',
  }),
};
