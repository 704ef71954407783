import { ToolPolicy } from '@gatehouse/contract';
import { AppError } from '../../../../../kernel/app-error.ts';
import type { Tool } from '../../../../../runtime/tool.ts';
import { boundTools, refuseTool, toolGroupNames } from '../../../../../runtime/tool-policy.ts';
import type { AgentsApi } from '../../../../agents/agents/api.ts';
import type { RunSpec } from '../plan-run.ts';

export interface RequiredToolsDeps {
  readonly agents: Pick<AgentsApi, 'find'>;
  readonly toolsOf: (agentId: string) => readonly Tool[];
}

/** Returns the policy that allows these groups of tools. */
export function toolGroupPolicy(groups: readonly string[]): ToolPolicy {
  const unknown = groups.find((name) => !toolGroupNames.includes(name));
  if (unknown !== undefined)
    throw new AppError('invalid_params', `toolGroups: unknown group ${unknown}; expected some of ${toolGroupNames.join(', ')}`, {
      param: 'toolGroups',
    });
  return ToolPolicy.parse({ profile: 'none', allow: groups.map((name) => `group:${name}`) });
}

/** Throws when the sub-agent would not have one of the required tools. */
export function checkRequiredTools(
  deps: RequiredToolsDeps,
  required: readonly string[] | undefined,
  { agent, policies, askedBy }: Pick<RunSpec, 'agent' | 'policies' | 'askedBy'>,
): void {
  if (required === undefined) return;
  const all = [...policies, ...(askedBy.bounds?.policies ?? [])];
  const others = [askedBy.agent, ...(askedBy.bounds?.agents ?? []).map((id) => deps.agents.find(id))];
  const bounding = others.filter((other, index) => index > 0 || other !== undefined).map((other) => other?.config);
  const tools = boundTools(deps.toolsOf(agent.id), all, bounding, askedBy.origin);
  const missing = required.filter(
    (name) => !tools.some((tool) => tool.name === name && refuseTool(tool, agent.config, askedBy.origin) === undefined),
  );
  if (missing.length > 0)
    throw new AppError('precondition_failed', `requiredTools: the sub-agent would not have ${missing.join(', ')}`, { param: 'requiredTools' });
}
