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

/** One of the agents that the token may ask; what is set stays to be chosen when it is none of them. */
export function AgentSelect({
  own,
  value,
  empty,
  onChange,
}: {
  readonly own: Own;
  readonly value: string;
  /** Words for no agent; without them one must be chosen. */
  readonly empty?: string | undefined;
  readonly onChange: (agent: string) => void;
}) {
  const ids = useStore(useSession().agents);
  return (
    <select {...own} value={value} onChange={(event) => onChange(event.target.value)}>
      {(empty !== undefined || value === '') && <option value="">{empty ?? 'Choose one'}</option>}
      {[...new Set([...(value === '' ? [] : [value]), ...ids])].map((id) => (
        <option key={id}>{id}</option>
      ))}
    </select>
  );
}

/** Several agents in their order, the same one more than once if wanted. */
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
        // Entries have no names of their own: their place is what tells them apart.
        <div key={at} className="agent-entry">
          <AgentSelect own={{ 'aria-label': `${label}, ${at + 1}` }} value={entry.agent} onChange={(agent) => set(at, { agent })} />
          {withSuffix && (
            <input
              aria-label={`Added to the task of ${label}, ${at + 1}`}
              placeholder="added to the task"
              value={entry.suffix}
              onChange={(event) => set(at, { suffix: event.target.value })}
            />
          )}
          <IconButton icon="close" label={`Remove ${label}, ${at + 1}`} onClick={() => onChange(entries.filter((_, index) => index !== at))} />
        </div>
      ))}
      <div>
        <Button
          small
          icon="plus"
          label={`Add to ${label}`}
          disabled={entries.length >= most}
          onClick={() => onChange([...entries, { agent: defaultAgentId, suffix: '' }])}
        >
          Add
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
