import { t } from '../../language.ts';
import { useRef } from 'react';
import { effortNames } from '../../data/effort-names.ts';
import { useModelChoices } from '../../data/model-choices.ts';
import type { PickerProps } from './model-picker.tsx';

/** The fields of the open picker. */
export function ModelSelects({ agentId, choice: { model, effort }, onChange, onClose }: PickerProps & { readonly onClose: () => void }) {
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
        aria-label={t('Model')}
        value={model ?? ''}
        onChange={({ target: { value } }) => {
          const next = value === '' ? data?.own : others.find(({ name }) => name === value);
          const keeps = effort !== undefined && next?.efforts.includes(effort) === true;
          onChange({ model: value === '' ? undefined : value, effort: keeps ? effort : undefined });
          // A model with a choice of effort leaves it open, so that one can be made.
          if (next === undefined || next.efforts.length === 0) onClose();
        }}
      >
        <option value="">{data === undefined ? t('Model of the agent') : t('Model of the agent ({name})', { name: data.own.name })}</option>
        {[...names].map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      {efforts.length > 0 && (
        <select
          aria-label={t('Effort')}
          value={effort ?? ''}
          onChange={({ target: { value } }) => {
            onChange({ model, effort: efforts.find((one) => one === value) });
            onClose();
          }}
        >
          <option value="">{t('Usual effort')}</option>
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
