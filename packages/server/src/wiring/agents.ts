import { createAgents } from '../features/agents/agents/agents.ts';
import { createTokens } from '../features/access/tokens/tokens.ts';
import { createWorkAuthority } from '../features/access/tokens/work-authority.ts';
import { owner } from '../gateway/owner.ts';
import type { IdentityOf } from '../kernel/call-context.ts';
import type { SettingsApi } from '../features/operations/settings/api.ts';
import { readOwnFile, replaceOwnFile } from '../kernel/private-file.ts';
import type { TokenFile } from '../features/access/tokens/changes.ts';
import type { ServerOptions } from '../server-handle.ts';
import type { Assembly } from './assembly.ts';
import type { Foundation } from './foundation.ts';
import type { Late } from './late.ts';
import type { Stops } from './stops.ts';
import type { Unattended } from './unattended.ts';
import type { Knowledge } from '../features/knowledge/sources/sources.ts';

export interface AgentsWiring {
  readonly knowsModel: (name: string) => boolean;
  readonly stops: Late<Stops>;
  readonly unattended: Late<Unattended>;
  readonly sources: Late<Knowledge>;
  readonly secrets: Foundation['secrets'];
  readonly settings: SettingsApi;
}

/** Wires agents and the tokens of their callers. */
export async function wireAgents(
  { building, options, live, core }: Assembly,
  { knowsModel, stops, unattended, sources, secrets, settings }: AgentsWiring,
) {
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
      hideSecrets: options.redactor.hide,
      removed: (agentId) => stops.value.agentRemoved(agentId),
      suspended: (agentId) => stops.value.agentSuspended(agentId),
      changed(agentId) {
        unattended.value.agentChanged(agentId);
        sources.value.agentChanged();
      },
    }),
  );
  const tokens = building.use(
    await createTokens({
      ...core('tokens'),
      pepper: options.installKey.derive('pepper'),
      configTokens: live(({ gateway }) => gateway.tokens),
      persons: live(({ persons }) => persons),
      generatedToken: options.generatedToken,
      rotateConfigured: secrets.api.rotateToken,
      settings,
      tokenFile: tokenFileOf(options),
    }),
  );
  const identityOf: IdentityOf = (tokenId, principalId) => {
    const identity = tokenId === owner.tokenId ? owner : tokens.api.current(tokenId);
    return identity === undefined || identity.principalId === principalId ? identity : { ...identity, principalId };
  };
  return { agents, tokens, identityOf, authority: createWorkAuthority(identityOf) };
}

/** Returns the file with the token of the first start. */
function tokenFileOf({ home, redactor }: Pick<ServerOptions, 'home' | 'redactor'>): TokenFile {
  const file = home.tokenFile;
  return {
    read() {
      try {
        return readOwnFile(file, { maxBytes: 1024 })?.text.trim() || undefined;
      } catch {
        // The next start refuses it.
        return undefined;
      }
    },
    write(secret) {
      if (secret !== '') redactor.add([secret]);
      replaceOwnFile(file, secret === '' ? '' : `${secret}\n`);
    },
  };
}
