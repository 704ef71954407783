import { useSession } from '../data/context.ts';
import { useStore } from '../data/store.ts';
import { Badge } from './parts.tsx';

/** The name of an agent, with its id as a tooltip. */
export function AgentBadge({ agentId }: { readonly agentId: string }) {
  const name = useStore(useSession().agentNames).get(agentId);
  return (
    <span title={name === undefined ? undefined : agentId}>
      <Badge>{name ?? agentId}</Badge>
    </span>
  );
}
