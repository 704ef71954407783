import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { Tier } from '../vetting/vet.ts';
import { type Installed, type InstallDeps, type Installing, installSkill } from './install.ts';
import { stampOf } from '../bundles/read-bundle.ts';
import type { SkillRoot } from '../bundles/root.ts';

export interface WritableDeps extends InstallDeps {
  readonly agents: Pick<AgentsApi, 'find' | 'defaultId'>;
  readonly shared: SkillRoot;
  readonly rootOf: (agent: Agent) => SkillRoot;
}

interface Writable {
  readonly agent: Agent;
  readonly root: SkillRoot;
  readonly tier: Tier;
}

/** Returns the folder that the caller may write; throws otherwise. */
export function writableRoot(
  { agents, shared, rootOf }: Pick<WritableDeps, 'agents' | 'shared' | 'rootOf'>,
  { scope, agentId }: { readonly scope: 'local' | 'shared'; readonly agentId?: string | undefined },
  call: CallContext,
): Writable {
  const agent = knownAgent(agents, agentId, call);
  if (scope === 'shared' && !agent.isDefault)
    throw new AppError('denied', `Only the default agent, ${agents.defaultId}, may write shared skills: use scope local for ${agent.id}`, {
      param: 'scope',
    });
  if (scope === 'shared' && call.identity.agents !== undefined)
    throw new AppError('denied', 'A token limited to some agents cannot write shared skills: use scope local', { param: 'scope' });
  return { agent, root: scope === 'shared' ? shared : rootOf(agent), tier: agent.isDefault ? 'operator' : 'agent-authored' };
}

function knownAgent(agents: WritableDeps['agents'], agentId: string = agents.defaultId, call: CallContext): Agent {
  if (call.agentCaller !== undefined) throw new AppError('denied', 'This method is for administrators, not for agents');
  const agent = agents.find(agentId);
  if (agent === undefined || call.identity.agents?.includes(agentId) === false)
    throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
  return agent;
}

/** Checks the disk, not the loaded skills, because refused skills are there too. */
export async function skillExists(root: SkillRoot, name: string, limits: ReturnType<InstallDeps['limits']>): Promise<boolean> {
  return (await stampOf(root.folderOf(name), limits)) !== undefined;
}

/** Installs a new skill while holding its folder; throws `conflict` when the name is taken. */
export function installNew(deps: InstallDeps, call: CallContext, about: Installing): Promise<Installed> {
  const { root, name } = about;
  return root.alone(async () => {
    if (!about.replace && name !== undefined && (await skillExists(root, name, deps.limits()))) throw taken(name);
    try {
      return await installSkill(deps, call, about);
    } catch (error) {
      if (error instanceof AppError && error.code === 'conflict') throw taken(name ?? 'of this name');
      throw error;
    }
  });
}

function taken(name: string): AppError {
  return new AppError('conflict', `Skill already exists: ${name}; use skills.update, or delete it first`, { param: 'name' });
}

/** Returns what methods answer about an installed skill. */
export const installedAnswer = ({ name, path, verdict, digest, findings }: Installed) => ({
  ok: true as const,
  name,
  path,
  verdict,
  sha256: digest,
  findings: [...findings],
});
