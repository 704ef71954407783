import { useState } from 'react';
import { useModelNames } from '../../data/model-names.ts';
import { Button } from '../../ui/parts.tsx';

/** Chooses the model of the next answers of a conversation. The models are loaded when it is opened. */
export function ModelPicker({ model, onChange }: { readonly model: string | undefined; readonly onChange: (model: string | undefined) => void }) {
  const [isOpen, setOpen] = useState(false);
  if (isOpen) return <ModelSelect model={model} onChange={onChange} onClose={() => setOpen(false)} />;
  return (
    <Button small look="quiet" icon="sliders" label={`Model: ${model ?? 'that of the agent'}`} onClick={() => setOpen(true)}>
      <span className="model-name">{model?.slice(model.indexOf('/') + 1) ?? 'Model'}</span>
    </Button>
  );
}

function ModelSelect({
  model,
  onChange,
  onClose,
}: {
  readonly model: string | undefined;
  readonly onChange: (model: string | undefined) => void;
  readonly onClose: () => void;
}) {
  const names = useModelNames();
  return (
    <select
      autoFocus
      aria-label="Model"
      value={model ?? ''}
      onBlur={onClose}
      onChange={(event) => {
        onChange(event.target.value === '' ? undefined : event.target.value);
        onClose();
      }}
    >
      <option value="">Model of the agent</option>
      {[...new Set([...names, ...(model === undefined ? [] : [model])])].map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}
