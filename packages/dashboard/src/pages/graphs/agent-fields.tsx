import { t } from '../../language.ts';
import { useId } from 'react';
import { useSession } from '../../data/context.ts';
import { useStore } from '../../data/store.ts';
import { Button, IconButton } from '../../ui/parts.tsx';
import type { AgentEntry } from './draft.ts';

type Own = {
  readonly id?: string;
  readonly 'aria-label'?: string;
  readonly 'aria-describedby'?: string | undefined;
  readonly 'aria-invalid'?: boolean | undefined;
};

const most = 10;

/** Selects one of the agents that the token may use; keeps the current value as an option even if it isn't one of them. */
export function AgentSelect({
  own,
  value,
  empty,
  onChange,
}: {
  readonly own: Own;
  readonly value: string;
  /** Label for no agent; without it, an agent must be selected. */
  readonly empty?: string | undefined;
  readonly onChange: (agent: string) => void;
}) {
  const ids = useStore(useSession().agents);
  return (
    <select {...own} value={value} onChange={(event) => onChange(event.target.value)}>
      {(empty !== undefined || value === '') && <option value="">{empty ?? t('Select an agent')}</option>}
      {[...new Set([...(value === '' ? [] : [value]), ...ids])].map((id) => (
        <option key={id}>{id}</option>
      ))}
    </select>
  );
}

/** Edits an ordered list of agents, which may contain one agent several times. */
export function AgentEntries({
  label,
  hint,
  error,
  entries,
  withSuffix,
  onChange,
}: {
  readonly label: string;
  readonly hint: string | undefined;
  readonly error: string | undefined;
  readonly entries: readonly AgentEntry[];
  readonly withSuffix: boolean;
  readonly onChange: (entries: readonly AgentEntry[]) => void;
}) {
  const { defaultAgentId } = useSession();
  const id = useId();
  const set = (at: number, part: Partial<AgentEntry>): void =>
    onChange(entries.map((entry, index) => (index === at ? { ...entry, ...part } : entry)));
  return (
    <fieldset className="field" aria-describedby={error === undefined ? undefined : `${id}-error`}>
      <legend>{label}</legend>
      {entries.map((entry, at) => (
        // Entries are identified by position: they have no ids.
        <div key={at} className="agent-entry">
          <AgentSelect own={{ 'aria-label': `${label}, ${at + 1}` }} value={entry.agent} onChange={(agent) => set(at, { agent })} />
          {withSuffix && (
            <input
              aria-label={t('Task suffix of {label}, {at}', { label, at: at + 1 })}
              placeholder={t('task suffix')}
              value={entry.suffix}
              onChange={(event) => set(at, { suffix: event.target.value })}
            />
          )}
          <IconButton
            icon="close"
            label={t('Remove {label}, {at}', { label, at: at + 1 })}
            onClick={() => onChange(entries.filter((_, index) => index !== at))}
          />
        </div>
      ))}
      <div>
        <Button
          small
          icon="plus"
          label={t('Add to {label}', { label })}
          disabled={entries.length >= most}
          onClick={() => onChange([...entries, { agent: defaultAgentId, suffix: '' }])}
        >
          {t('Add')}
        </Button>
      </div>
      {hint !== undefined && <p className="hint">{hint}</p>}
      {error !== undefined && (
        <p className="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
    </fieldset>
  );
}
