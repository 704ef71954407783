import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useStore } from '../../data/store.ts';
import { SearchField } from '../../ui/search-field.tsx';
import { type Filters, memoryTypes, trustLevels } from './find-memories.ts';

/** Chooses which memories are listed. */
export function MemoryFilters({
  agentId,
  input,
  filters,
  onAgent,
  onInput,
  onFilter,
}: {
  readonly agentId: string;
  readonly input: string;
  readonly filters: Filters;
  readonly onAgent: (agentId: string) => void;
  readonly onInput: (text: string) => void;
  readonly onFilter: (part: Partial<Filters>) => void;
}) {
  const agentIds = useStore(useSession().agents);
  return (
    <div className="toolbar">
      <SearchField label={t('Search memories')} hint={t('Search by terms and meaning')} value={input} onChange={onInput} />
      {agentIds.length > 1 && (
        <select aria-label={t('Agent')} value={agentId} onChange={(event) => onAgent(event.target.value)}>
          {[...new Set([agentId, ...agentIds])].map((id) => (
            <option key={id}>{id}</option>
          ))}
        </select>
      )}
      <select
        aria-label={t('Type')}
        value={filters.type ?? ''}
        onChange={({ target: { value } }) => onFilter({ type: memoryTypes.find((one) => one === value) })}
      >
        <option value="">{t('All types')}</option>
        {memoryTypes.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
      <select
        aria-label={t('Trust')}
        value={filters.trust ?? ''}
        onChange={({ target: { value } }) => onFilter({ trust: trustLevels.find((one) => one === value) })}
      >
        <option value="">{t('Any trust')}</option>
        {trustLevels.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
      <TagFilter tag={filters.tag} onChange={(tag) => onFilter({ tag })} />
    </div>
  );
}

function TagFilter({ tag, onChange }: { readonly tag: string | undefined; readonly onChange: (tag: string | undefined) => void }) {
  const [draft, setDraft] = useState('');
  if (tag !== undefined)
    return (
      <button
        type="button"
        className="chip"
        aria-pressed="true"
        onClick={() => onChange(undefined)}
        aria-label={t('Remove filter: tag {tag}', { tag })}
      >
        {tag} ×
      </button>
    );
  return (
    <form
      className="tag-filter"
      onSubmit={(event) => {
        event.preventDefault();
        if (draft.trim() !== '') onChange(draft.trim());
        setDraft('');
      }}
    >
      <input aria-label={t('Tag')} placeholder={t('Tag')} value={draft} onChange={(event) => setDraft(event.target.value)} />
    </form>
  );
}
