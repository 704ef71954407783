import { t } from '../../language.ts';
import { Suspense, useState } from 'react';
import type { ModelChoice } from '../../data/chat-models.ts';
import { effortNames } from '../../data/effort-names.ts';
import { ModelSelects } from '../../lazy-pages.ts';
import { Button } from '../../ui/parts.tsx';

export interface PickerProps {
  readonly agentId: string;
  readonly choice: ModelChoice;
  readonly onChange: (choice: ModelChoice) => void;
}

/** Chooses the model of the next answers of a conversation, and its effort where it has one. Both are loaded when it is opened. */
export function ModelPicker({ agentId, choice, onChange }: PickerProps) {
  const [isOpen, setOpen] = useState(false);
  if (isOpen)
    return (
      <Suspense fallback={null}>
        <ModelSelects agentId={agentId} choice={choice} onChange={onChange} onClose={() => setOpen(false)} />
      </Suspense>
    );
  const { model, effort } = choice;
  const label = [model ?? t('that of the agent'), effort && effortNames[effort].toLowerCase()].filter(Boolean).join(', ');
  const shown = [model?.slice(model.indexOf('/') + 1) ?? t('Model'), effort].filter(Boolean).join(' · ');
  return (
    <Button small look="quiet" icon="sliders" label={t('Model: {label}', { label })} onClick={() => setOpen(true)}>
      <span className="model-name">{shown}</span>
    </Button>
  );
}
