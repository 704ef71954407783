import type { Tool } from '../../../../runtime/tool.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import type { Results } from '../completion/results.ts';
import type { createSpawn } from '../requests/spawn/spawn.ts';
import { createAgentsListTool } from './agents-list.ts';
import { createReadResultTool } from './read-result.ts';
import { createSpawnTool } from './sessions-spawn.ts';
import { type ControlDeps, createControlTool } from './subagents.ts';

export interface ToolDeps extends ControlDeps {
  readonly agents: Pick<AgentsApi, 'list'>;
  readonly results: Pick<Results, 'wholeOf'>;
  readonly spawn: ReturnType<typeof createSpawn>;
}

/** Creates the tools of sub-agents: an agent starts, sees and stops only what its own conversation requested. */
export function createSubagentTools(deps: ToolDeps): readonly Tool[] {
  return [
    createSpawnTool(deps.spawn),
    createControlTool(deps),
    createAgentsListTool(deps.agents, deps.config),
    createReadResultTool(deps.db, deps.results),
  ];
}
