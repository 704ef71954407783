import { t } from '../language.ts';
import { useSession } from '../data/context.ts';
import { useStore } from '../data/store.ts';

/** Limits a page to one agent; hidden while there is only one. */
export function AgentFilter({ value, onChange }: { readonly value: string | undefined; readonly onChange: (agentId: string | undefined) => void }) {
  const { agents, agentNames } = useSession();
  const agentIds = useStore(agents);
  const names = useStore(agentNames);
  if (agentIds.length < 2) return null;
  return (
    <select aria-label={t('Agent')} value={value ?? ''} onChange={(event) => onChange(event.target.value === '' ? undefined : event.target.value)}>
      <option value="">{t('All agents')}</option>
      {agentIds.map((id) => (
        <option key={id} value={id}>
          {names.get(id) ?? id}
        </option>
      ))}
    </select>
  );
}
