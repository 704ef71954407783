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
    summary: 'Creates an agent in `config.yaml`, usable at once.',
    description:
      'Writes the values that differ from the defaults, as a version of the configuration. Emits `agent:hot_added`. The workspace folder is created on first use.',
    params: () => z.strictObject({ agentId: AgentId, config: AgentConfig.optional() }),
    result: () => z.strictObject({ agentId: AgentId, config: AgentConfig, created: z.literal(true), workspaceDir: z.string() }),
    errors: ['conflict', 'denied', 'precondition_failed', 'unavailable'],
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
    summary: 'Returns the effective configuration of one agent, and where each value comes from.',
    params: () => z.strictObject({ agentId: AgentId }),
    result: () =>
      z.strictObject({
        agentId: AgentId,
        config: AgentConfig,
        origins: z
          .record(z.string(), z.enum(['file', 'reference', 'default', 'installation']))
          .describe(
            'Where each value comes from, by dotted key: the entry in `config.yaml`, a `${NAME}` in it, the default, or, for an absent key, another section of the configuration. Empty while the file cannot be parsed.',
          ),
        source: z
          .enum(['file', 'default', 'stored'])
          .describe(
            '`default`: the default agent without an entry in `config.yaml`; `stored`: an agent of an earlier version that could not be moved into the file yet.',
          ),
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
          origins: { name: 'file', model: 'file', maxSteps: 'file', temperature: 'default' },
          source: 'file',
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
      'Changes the entry in `config.yaml`, as a version of the configuration; comments stay, and so does a `${NAME}` whose value is given unchanged. Values are taken as they are: a text that looks like a reference is escaped. `dryRun: true` validates and returns the merged configuration; nothing is stored or applied.',
    params: () => z.strictObject({ agentId: AgentId, config: AgentConfigPatch, dryRun: z.boolean().default(false) }),
    result: () => z.strictObject({ agentId: AgentId, config: AgentConfig, updated: z.boolean(), dryRun: z.literal(true).optional() }),
    errors: ['not_found', 'conflict', 'precondition_failed', 'unavailable'],
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
    summary: 'Deletes an agent from `config.yaml`; its conversations stay, new turns for it fail.',
    description: 'Emits `agent:hot_removed`. The default agent cannot be deleted.',
    params: () => z.strictObject({ agentId: AgentId }),
    result: () => z.strictObject({ agentId: AgentId, deleted: z.literal(true) }),
    errors: ['not_found', 'conflict', 'precondition_failed', 'unavailable'],
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
