import { type AgentToolsDeps, createAgentTools } from './agent-tools.ts';
import type { McpOffer } from './offer.ts';
import { createWorkspaceResources } from './workspace-resources.ts';

/** Creates what Gatehouse itself offers to MCP clients: its agents and their workspaces. */
export function createAgentsOffer(deps: AgentToolsDeps): McpOffer {
  return {
    tools: createAgentTools(deps),
    resources: createWorkspaceResources(deps.agents),
    onToolsChanged: (listener) => deps.bus.listen(['agent:hot_added', 'agent:hot_removed'], listener),
  };
}
