import { useAgentName } from '../data/agent-names.ts';
import { useSession } from '../data/context.ts';
import { useStore } from '../data/store.ts';

/** Limits a page to one agent; hidden while there is only one. */
export function AgentFilter({ value, onChange }: { readonly value: string | undefined; readonly onChange: (agentId: string | undefined) => void }) {
  const agentIds = useStore(useSession().agents);
  const nameOf = useAgentName();
  if (agentIds.length < 2) return null;
  return (
    <select aria-label="Agent" value={value ?? ''} onChange={(event) => onChange(event.target.value === '' ? undefined : event.target.value)}>
      <option value="">All agents</option>
      {agentIds.map((id) => (
        <option key={id} value={id}>
          {nameOf(id)}
        </option>
      ))}
    </select>
  );
}
