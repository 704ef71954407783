import { useAgentName } from '../data/agent-names.ts';
import { Badge } from './parts.tsx';

/** The name of an agent, with its id as a tooltip. */
export function AgentBadge({ agentId }: { readonly agentId: string }) {
  const name = useAgentName()(agentId);
  return <span title={name === agentId ? undefined : agentId}>{<Badge>{name}</Badge>}</span>;
}
