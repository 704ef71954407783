import { t } from '../../language.ts';
import type { ParamsInput } from '@gatehouse/contract';
import { useId } from 'react';
import { DraftError, errorOf, type FieldErrors } from '../../data/field-errors.ts';
import { Button, IconButton } from '../../ui/parts.tsx';
import { isRecord } from '../../ui/schema/paths.ts';

type Model = NonNullable<ParamsInput<'providers.set'>['models']>[number];

/** A model as it is typed; what the row does not show is kept. */
export interface ModelDraft {
  readonly key: number;
  readonly id: string;
  readonly contextWindow: string;
  readonly input: string;
  readonly output: string;
  readonly rest: Readonly<Record<string, unknown>>;
}

let nextKey = 1;

export function toDrafts(models: unknown): readonly ModelDraft[] {
  return (Array.isArray(models) ? models : []).filter(isRecord).map(({ id, contextWindow, ...rest }): ModelDraft => {
    const cost = isRecord(rest['cost']) ? rest['cost'] : {};
    return { key: nextKey++, id: text(id), contextWindow: text(contextWindow), input: text(cost['input']), output: text(cost['output']), rest };
  });
}

/** Returns the models to send; the server checks them, except for texts that are not numbers. */
export function toModels(drafts: readonly ModelDraft[]): Model[] {
  return drafts.map(({ id, contextWindow, input, output, rest }, index) => {
    const { cost, ...others } = rest;
    const hasPrice = input.trim() !== '' || output.trim() !== '';
    return {
      ...others,
      id,
      ...(contextWindow.trim() !== '' && { contextWindow: numberOf(contextWindow, `models[${index}].contextWindow`) }),
      ...(hasPrice && {
        cost: {
          ...(isRecord(cost) ? cost : {}),
          input: numberOf(input, `models[${index}].cost.input`),
          output: numberOf(output, `models[${index}].cost.output`),
        },
      }),
    };
  });
}

function numberOf(value: string, path: string): number {
  const number = Number(value.trim());
  if (value.trim() === '' || !Number.isFinite(number)) throw new DraftError(path, 'expected a number');
  return number;
}

function text(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

/** The models that config.yaml names for a provider, with their prices. */
export function ModelRows({
  models,
  errors,
  suggestions,
  onChange,
}: {
  readonly models: readonly ModelDraft[];
  readonly errors: FieldErrors;
  /** Models that the provider lists. */
  readonly suggestions: readonly string[];
  readonly onChange: (models: readonly ModelDraft[]) => void;
}) {
  const listId = useId();
  const change = (at: number, part: Partial<ModelDraft>): void =>
    onChange(models.map((model, index) => (index === at ? { ...model, ...part } : model)));
  return (
    <fieldset className="model-rows">
      <legend>{t('Models and prices')}</legend>
      <p className="hint">{t('Only what differs from the list of the provider and the built-in prices; prices in US dollars per million tokens.')}</p>
      <datalist id={listId}>
        {suggestions.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      {models.map((model, index) => {
        const message = errorOf(errors, `models[${index}]`);
        const name = model.id === '' ? t('model {index}', { index: index + 1 }) : model.id;
        const cell = (part: 'contextWindow' | 'input' | 'output', label: string, placeholder: string) => (
          <input
            aria-label={t('{label} of {name}', { label, name })}
            inputMode="decimal"
            placeholder={placeholder}
            value={model[part]}
            onChange={({ target }) => change(index, { [part]: target.value })}
          />
        );
        return (
          <div key={model.key}>
            <div className="model-row">
              <input
                aria-label={t('Name of model {index}', { index: index + 1 })}
                className="mono"
                list={listId}
                placeholder={t('Model')}
                spellCheck={false}
                autoComplete="off"
                value={model.id}
                onChange={({ target }) => change(index, { id: target.value })}
              />
              {cell('contextWindow', t('Context'), t('Context'))}
              {cell('input', t('Input price'), t('Input $'))}
              {cell('output', t('Output price'), t('Output $'))}
              <IconButton icon="trash" label={t('Remove {name}', { name })} onClick={() => onChange(models.toSpliced(index, 1))} />
            </div>
            {message !== undefined && <p className="field-error">{message}</p>}
          </div>
        );
      })}
      <Button small icon="plus" onClick={() => onChange([...models, { key: nextKey++, id: '', contextWindow: '', input: '', output: '', rest: {} }])}>
        {t('Add a model')}
      </Button>
    </fieldset>
  );
}
