import { createAgents } from '../features/agents/agents/agents.ts';
import { createTokens } from '../features/access/tokens/tokens.ts';
import { owner } from '../gateway/owner.ts';
import type { IdentityOf } from '../kernel/call-context.ts';
import type { SettingsApi } from '../features/operations/settings/api.ts';
import type { Assembly } from './assembly.ts';
import type { Foundation } from './foundation.ts';
import type { Late } from './late.ts';
import type { Stops } from './stops.ts';
import type { Unattended } from './unattended.ts';

export interface AgentsWiring {
  readonly knowsModel: (name: string) => boolean;
  readonly stops: Late<Stops>;
  readonly unattended: Late<Unattended>;
  readonly secrets: Foundation['secrets'];
  readonly settings: SettingsApi;
}

/** Wires agents and the tokens of their callers. */
export async function wireAgents({ building, options, live, core }: Assembly, { knowsModel, stops, unattended, secrets, settings }: AgentsWiring) {
  const { config, home } = options;
  const agents = building.use(
    await createAgents({
      ...core('agents'),
      configured: live((whole) => whole.agents),
      defaultId: config.routing.defaultAgentId,
      workspacesDir: home.workspacesDir,
      knowsModel,
      settings,
      readText: () => options.configuration.readText(),
      removed: (agentId) => stops.value.agentRemoved(agentId),
      suspended: (agentId) => stops.value.agentSuspended(agentId),
      changed: (agentId) => unattended.value.agentChanged(agentId),
    }),
  );
  const tokens = building.use(
    await createTokens({
      ...core('tokens'),
      pepper: options.installKey.derive('pepper'),
      configTokens: live(({ gateway }) => gateway.tokens),
      generatedToken: options.generatedToken,
      rotateConfigured: secrets.api.rotateToken,
    }),
  );
  const identityOf: IdentityOf = (tokenId) => (tokenId === owner.tokenId ? owner : tokens.api.current(tokenId));
  return { agents, tokens, identityOf };
}
