import type { AnswerEffort } from '@gatehouse/contract';
import { useRef, useState } from 'react';
import type { ModelChoice } from '../../data/chat-models.ts';
import { useModelChoices } from '../../data/model-choices.ts';
import { Button } from '../../ui/parts.tsx';

interface PickerProps {
  readonly agentId: string;
  readonly choice: ModelChoice;
  readonly onChange: (choice: ModelChoice) => void;
}

const effortNames: Readonly<Record<AnswerEffort, string>> = { low: 'Low effort', medium: 'Medium effort', high: 'High effort' };

/** Chooses the model of the next answers of a conversation, and its effort where it has one. Both are loaded when it is opened. */
export function ModelPicker({ agentId, choice, onChange }: PickerProps) {
  const [isOpen, setOpen] = useState(false);
  if (isOpen) return <ModelSelects agentId={agentId} choice={choice} onChange={onChange} onClose={() => setOpen(false)} />;
  const { model, effort } = choice;
  const label = [model ?? 'that of the agent', effort && effortNames[effort].toLowerCase()].filter(Boolean).join(', ');
  const shown = [model?.slice(model.indexOf('/') + 1) ?? 'Model', effort].filter(Boolean).join(' · ');
  return (
    <Button small look="quiet" icon="sliders" label={`Model: ${label}`} onClick={() => setOpen(true)}>
      <span className="model-name">{shown}</span>
    </Button>
  );
}

function ModelSelects({ agentId, choice: { model, effort }, onChange, onClose }: PickerProps & { readonly onClose: () => void }) {
  const box = useRef<HTMLSpanElement>(null);
  const { data } = useModelChoices(agentId);
  const others = data?.others ?? [];
  const chosen = model === undefined ? data?.own : others.find(({ name }) => name === model);
  const efforts = chosen?.efforts ?? [];
  const names = new Set([...others.map(({ name }) => name), ...(model === undefined ? [] : [model])]);
  return (
    <span
      ref={box}
      className="model-selects"
      onBlur={({ relatedTarget }) => {
        if (!(relatedTarget instanceof Node) || box.current?.contains(relatedTarget) !== true) onClose();
      }}
    >
      <select
        autoFocus
        aria-label="Model"
        value={model ?? ''}
        onChange={({ target: { value } }) => {
          const next = value === '' ? data?.own : others.find(({ name }) => name === value);
          const keeps = effort !== undefined && next?.efforts.includes(effort) === true;
          onChange({ model: value === '' ? undefined : value, effort: keeps ? effort : undefined });
          // A model with a choice of effort leaves it open, so that one can be made.
          if (next === undefined || next.efforts.length === 0) onClose();
        }}
      >
        <option value="">{data === undefined ? 'Model of the agent' : `Model of the agent (${data.own.name})`}</option>
        {[...names].map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      {efforts.length > 0 && (
        <select
          aria-label="Effort"
          value={effort ?? ''}
          onChange={({ target: { value } }) => {
            onChange({ model, effort: efforts.find((one) => one === value) });
            onClose();
          }}
        >
          <option value="">Usual effort</option>
          {efforts.map((one) => (
            <option key={one} value={one}>
              {effortNames[one]}
            </option>
          ))}
        </select>
      )}
    </span>
  );
}
