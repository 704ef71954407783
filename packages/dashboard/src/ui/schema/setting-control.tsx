import { t } from '../../language.ts';
import { useState } from 'react';
import { hiddenSecret } from './changes.ts';
import type { ControlProps } from './control-props.ts';
import { ModelControl, ModelListControl } from './model-control.tsx';

/** The control that fits the schema of a key. A reference such as `${NAME}` is edited as a text wherever it may stand for a value. */
export function SettingControl(props: ControlProps) {
  const { setting, value } = props;
  const { shape } = setting;
  if (setting.secret && shape.kind === 'text') return <SecretControl {...props} />;
  if (typeof value === 'string' && value.includes('${') && shape.kind !== 'text') return <TextControl {...props} />;
  switch (shape.kind) {
    case 'boolean':
      return <SwitchControl {...props} />;
    case 'number':
      return <NumberControl {...props} />;
    case 'choice':
      return <ChoiceControl {...props} options={shape.options} />;
    case 'choices':
      return <ChoicesControl {...props} options={shape.options} />;
    case 'lines':
      if (setting.path.at(-1) === 'fallbackModels') return <ModelListControl {...props} />;
      return <LinesControl {...props} />;
    case 'text':
      if (setting.path.at(-1) === 'model') return <ModelControl {...props} />;
      return shape.long ? <LongTextControl {...props} /> : <TextControl {...props} />;
    default:
      return <JsonControl {...props} />;
  }
}

function SwitchControl({ value, fallback, onChange, own }: ControlProps) {
  const isOn = (value ?? fallback) === true;
  return (
    <span className="switch-line">
      <input {...own} type="checkbox" role="switch" className="switch" checked={isOn} onChange={({ target }) => onChange(target.checked)} />
      <span aria-hidden="true">{isOn ? t('On') : t('Off')}</span>
    </span>
  );
}

/** A text field with the characters of a number: a text that is none stays as it is typed, and the server says what it expected. */
function NumberControl({ setting: { unit, isEntry }, value, fallback, onChange, own }: ControlProps) {
  return (
    <span className="with-unit">
      <input
        {...own}
        inputMode="decimal"
        autoComplete="off"
        placeholder={typeof fallback === 'number' ? String(fallback) : t('Not set')}
        value={value === undefined ? '' : String(value)}
        onChange={({ target: { value: text } }) => onChange(text.trim() === '' && !isEntry ? undefined : numberOrText(text))}
      />
      {unit !== undefined && <span className="unit">{unit}</span>}
    </span>
  );
}

function numberOrText(text: string): unknown {
  const trimmed = text.trim();
  // A number that would be written in another way is still being typed: "1.", "1.50".
  return trimmed !== '' && String(Number(trimmed)) === trimmed ? Number(trimmed) : text;
}

function ChoiceControl({ setting, value, fallback, onChange, own, options }: ControlProps & { readonly options: readonly string[] }) {
  return (
    <select
      {...own}
      value={typeof value === 'string' ? value : ''}
      onChange={({ target }) => onChange(target.value === '' ? undefined : target.value)}
    >
      {!setting.isEntry && <option value="">{typeof fallback === 'string' ? t('Default: {fallback}', { fallback }) : t('Not set')}</option>}
      {options.map((option) => (
        <option key={option}>{option}</option>
      ))}
    </select>
  );
}

function ChoicesControl({ setting, value, fallback, onChange, own, options }: ControlProps & { readonly options: readonly string[] }) {
  const chosen: readonly unknown[] = Array.isArray(value) ? value : Array.isArray(fallback) ? fallback : [];
  return (
    <div className="chips" role="group" aria-label={setting.title} aria-describedby={own['aria-describedby']}>
      {options.map((option, index) => {
        const isOn = chosen.includes(option);
        return (
          <button
            key={option}
            id={index === 0 ? own.id : undefined}
            type="button"
            className="chip"
            aria-pressed={isOn}
            onClick={() => onChange(isOn ? chosen.filter((one) => one !== option) : options.filter((one) => one === option || chosen.includes(one)))}
          >
            {option}
          </button>
        );
      })}
    </div>
  );
}

function TextControl({ setting, value, fallback, onChange, own }: ControlProps) {
  return (
    <input
      {...own}
      spellCheck={false}
      autoCapitalize="off"
      autoComplete="off"
      className={typeof value === 'string' && value.includes('${') ? 'mono' : undefined}
      placeholder={typeof fallback === 'string' && fallback !== '' ? fallback : t('Not set')}
      value={value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)}
      onChange={({ target }) => onChange(target.value === '' && !setting.isEntry ? undefined : target.value)}
    />
  );
}

function LongTextControl({ setting, value, fallback, onChange, own }: ControlProps) {
  const text = typeof value === 'string' ? value : '';
  return (
    <textarea
      {...own}
      rows={Math.min(16, Math.max(3, text.split('\n').length + 1))}
      placeholder={typeof fallback === 'string' && fallback !== '' ? fallback : t('Not set')}
      value={text}
      onChange={({ target }) => onChange(target.value === '' && !setting.isEntry ? undefined : target.value)}
    />
  );
}

/** Never shows what is stored: a value can only be replaced. */
function SecretControl({ setting, value, onChange, own }: ControlProps) {
  const isReference = typeof value === 'string' && value.includes('${');
  const isHidden = typeof value === 'string' && value.includes(hiddenSecret);
  return (
    <input
      {...own}
      type={isReference || value === undefined || isHidden ? 'text' : 'password'}
      spellCheck={false}
      autoCapitalize="off"
      autoComplete="off"
      className="mono"
      placeholder={isHidden ? t('Hidden; type to replace it') : '${NAME}'}
      value={typeof value === 'string' && !isHidden ? value : ''}
      onChange={({ target }) => onChange(target.value === '' && !setting.isEntry ? undefined : target.value)}
    />
  );
}

function LinesControl({ value, fallback, onChange, own }: ControlProps) {
  const [text, setText] = useState('');
  const list: readonly unknown[] = Array.isArray(value) ? value : [];
  // The own text is kept while it says the same: blank lines and spaces are typed before the next item.
  const shown = value !== undefined && JSON.stringify(toLines(text)) === JSON.stringify(value) ? text : list.join('\n');
  const defaults: readonly unknown[] = Array.isArray(fallback) ? fallback : [];
  return (
    <textarea
      {...own}
      className="mono"
      spellCheck={false}
      autoCapitalize="off"
      rows={Math.min(10, Math.max(2, shown.split('\n').length))}
      placeholder={value === undefined && defaults.length > 0 ? defaults.join('\n') : t('One per line')}
      value={shown}
      onChange={({ target }) => {
        setText(target.value);
        onChange(target.value === '' ? undefined : toLines(target.value));
      }}
    />
  );
}

function toLines(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** A value as JSON, for what no other control can show. */
export function JsonControl({ value, onChange, onProblem, error, own, rows = 6 }: ControlProps & { readonly rows?: number }) {
  const [text, setText] = useState<string>();
  const parsed = text === undefined ? undefined : parse(text);
  const isKept = parsed !== undefined && ('problem' in parsed ? error !== undefined : JSON.stringify(parsed.value) === JSON.stringify(value));
  const shown = isKept && text !== undefined ? text : value === undefined ? '' : JSON.stringify(value, null, 2);
  return (
    <textarea
      {...own}
      className="editor"
      spellCheck={false}
      autoCapitalize="off"
      rows={Math.min(28, Math.max(rows, shown.split('\n').length))}
      value={shown}
      onChange={({ target }) => {
        setText(target.value);
        const next = parse(target.value);
        onProblem('problem' in next ? next.problem : undefined);
        if (!('problem' in next)) onChange(next.value);
      }}
    />
  );
}

function parse(text: string): { readonly value: unknown } | { readonly problem: string } {
  if (text.trim() === '') return { value: undefined };
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { problem: t('Not valid JSON: {message}', { message: error instanceof Error ? error.message : String(error) }) };
  }
}
