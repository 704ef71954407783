import { AgentConfig } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import { documentValue } from '../../../kernel/config/edit.ts';
import { redactedConfig } from '../../../kernel/config/redacted.ts';
import { redactionMarker } from '../../../kernel/config/secrets.ts';
import type { Live } from '../../../kernel/config/live.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { newId, newTraceId } from '../../../kernel/ids.ts';
import type { AgentsApi, ConfigureAgent } from './api.ts';
import { AgentChanges, type AgentChangesDeps } from './changes.ts';
import { entryOf, type Origin, originsOf } from './entry.ts';
import { AgentRegistry, type AgentRegistryDeps } from './registry.ts';
import { listAgents } from './store.ts';

type AgentMethods = HandlersOf<`agents.${'list' | 'create' | 'get' | 'update' | 'delete' | 'suspend' | 'resume'}`>;

export interface AgentsDeps extends AgentRegistryDeps, AgentChangesDeps {
  /** Agents of config.yaml; the default agent is added when it is not among them. */
  readonly configured: Live<Readonly<Record<string, AgentConfig>>>;
  /** Returns the present text of config.yaml. */
  readonly readText: () => string;
  /** Removes live secrets. */
  readonly hideSecrets: (text: string) => string;
}

/** Agents: read from memory, changed in config.yaml. */
export async function createAgents(
  deps: AgentsDeps,
): Promise<{ readonly api: AgentsApi; readonly methods: AgentMethods; readonly configure: ConfigureAgent } & Disposable> {
  const { configured, log, readText, hideSecrets } = deps;
  const registry = new AgentRegistry(deps, configured.current, await deps.db.read(listAgents, {}));
  const changes = new AgentChanges(deps, registry);
  if (registry.storedIds().length > 0) {
    await changes.moveAllStored(systemCall(), (agentId, error) =>
      log.error(
        { agentId, err: error },
        'The stored configuration of an agent could not be moved into config.yaml: it stays in force, and the next start tries again',
      ),
    );
    registry.configure(configured.current);
  }
  const following = configured.onChange((next) => changes.follow(next));

  const configure: ConfigureAgent = async (change, call) => {
    const config = await changes.configure(change, call);
    return { ...registry.visible(change.agentId, call), config };
  };

  /** Parsed once for all agents that a client asks for. */
  let parsed: { readonly text: string; readonly document: unknown } | undefined;

  /** Empty while the file cannot be parsed. */
  function originsOfAgent(agentId: string, config: AgentConfig): Record<string, Origin> {
    try {
      const text = readText();
      if (parsed?.text !== text) parsed = { text, document: documentValue(text) };
      return originsOf(config, entryOf(parsed.document, agentId));
    } catch {
      return {};
    }
  }

  /** Returns a configuration without live secrets: instructions may hold one, where it does not belong. */
  const shown = (config: AgentConfig): AgentConfig => AgentConfig.parse(redactedConfig(AgentConfig, config, hideSecrets));

  const api: AgentsApi = {
    defaultId: deps.defaultId,
    list: () => registry.list(),
    find: (agentId) => registry.find(agentId),
    usable(agentId, call) {
      const agent = registry.visible(agentId ?? deps.defaultId, call);
      if (agent.suspended) throw new AppError('precondition_failed', `Agent is suspended: ${agent.id}`);
      return agent;
    },
  };

  const methods: AgentMethods = {
    'agents.list': async (_params, call) => ({
      agents: registry
        .list()
        .map((agent) => agent.id)
        .filter((id) => call.identity.agents?.includes(id) ?? true),
    }),

    'agents.get': async ({ agentId }, call) => {
      const { config, source, suspended, isDefault, workspaceDir } = registry.visible(agentId, call);
      return { agentId, config: shown(config), origins: originsOfAgent(agentId, config), source, suspended, isDefault, workspaceDir };
    },

    'agents.create': async ({ agentId, config = AgentConfig.parse({}) }, call) => {
      await changes.create(agentId, config, call);
      return { agentId, config: shown(config), created: true as const, workspaceDir: registry.workspaceOf(agentId) };
    },

    'agents.update': async ({ agentId, config: patch, dryRun }, call) => {
      if (JSON.stringify(patch).includes(redactionMarker))
        throw new AppError('invalid_params', 'config holds the redaction marker: leave out what is to stay as it is', { param: 'config' });
      const config = await changes.configure({ agentId, patch, action: 'agents.update', dryRun }, call);
      return { agentId, config: shown(config), updated: !dryRun, ...(dryRun && { dryRun: true as const }) };
    },

    'agents.delete': async ({ agentId }, call) => {
      await changes.delete(agentId, call);
      return { agentId, deleted: true as const };
    },

    'agents.suspend': async ({ agentId }, call) => ({ agentId: (await changes.setSuspended(agentId, true, call)).id, suspended: true as const }),
    'agents.resume': async ({ agentId }, call) => ({ agentId: (await changes.setSuspended(agentId, false, call)).id, resumed: true as const }),
  };

  return { api, methods, configure, [Symbol.dispose]: () => following[Symbol.dispose]() };
}

/** The call of a start, which moves what an earlier version stored. */
function systemCall(): CallContext {
  return {
    identity: { principalId: 'system', tokenId: 'system', scopes: ['*'] },
    traceId: newTraceId(),
    requestId: newId('rq'),
    signal: new AbortController().signal,
    transport: 'process',
  };
}
