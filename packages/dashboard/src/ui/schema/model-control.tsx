import { t } from '../../language.ts';
import { useId, useState } from 'react';
import { IconButton } from '../parts.tsx';
import type { ControlProps } from './control-props.ts';
import { useSettingForm } from './form.ts';

/** A model of the catalog, or any other name. */
export function ModelControl({ setting, value, fallback, onChange, own }: ControlProps) {
  const { models } = useSettingForm();
  const listId = useId();
  return (
    <>
      <input
        {...own}
        list={listId}
        spellCheck={false}
        autoCapitalize="off"
        autoComplete="off"
        placeholder={typeof fallback === 'string' ? fallback : t('Not set')}
        value={typeof value === 'string' ? value : ''}
        onChange={({ target }) => onChange(target.value === '' && !setting.isEntry ? undefined : target.value)}
      />
      <ModelNames id={listId} models={models} />
    </>
  );
}

/** Models in the order in which they are tried. */
export function ModelListControl({ setting, value, onChange, own }: ControlProps) {
  const { models } = useSettingForm();
  const [name, setName] = useState('');
  const listId = useId();
  const chosen: readonly string[] = Array.isArray(value) ? value.map(String) : [];
  const add = (model: string): void => {
    if (model.trim() === '') return;
    onChange([...chosen, model.trim()]);
    setName('');
  };
  const move = (from: number): void => onChange(chosen.toSpliced(from, 1).toSpliced(from - 1, 0, ...chosen.slice(from, from + 1)));
  return (
    <div className="model-list">
      {chosen.length > 0 && (
        <ol aria-label={setting.title}>
          {chosen.map((model, index) => (
            <li key={`${index} ${model}`}>
              <span className="model-list-name">{model}</span>
              {index > 0 && <IconButton icon="up" label={t('Try {model} earlier', { model })} onClick={() => move(index)} />}
              <IconButton
                icon="close"
                label={t('Remove {model}', { model })}
                onClick={() => onChange(chosen.length === 1 ? undefined : chosen.toSpliced(index, 1))}
              />
            </li>
          ))}
        </ol>
      )}
      <input
        {...own}
        list={listId}
        spellCheck={false}
        autoCapitalize="off"
        autoComplete="off"
        placeholder={t('Add a model')}
        value={name}
        onChange={({ target }) => (models.includes(target.value) ? add(target.value) : setName(target.value))}
        onBlur={() => add(name)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter') return;
          event.preventDefault();
          add(name);
        }}
      />
      <ModelNames id={listId} models={models.filter((model) => !chosen.includes(model))} />
    </div>
  );
}

function ModelNames({ id, models }: { readonly id: string; readonly models: readonly string[] }) {
  return (
    <datalist id={id}>
      {models.map((model) => (
        <option key={model} value={model} />
      ))}
    </datalist>
  );
}
