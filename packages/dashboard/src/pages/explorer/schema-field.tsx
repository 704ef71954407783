import { t } from '../../language.ts';
import { useState } from 'react';
import { Field } from '../../ui/parts.tsx';
import { type FieldShape, hintOf, isSchema, type Lookup, type Schema, shapeOf } from '../../ui/schema/schema.ts';

interface FieldProps {
  readonly name: string;
  readonly schema: Schema;
  readonly required: boolean;
  readonly lookup: Lookup;
  readonly value: unknown;
  /** Called with undefined to omit the field. */
  readonly onChange: (value: unknown) => void;
  readonly depth?: number;
}

const maxDepth = 4;

/** Shows a parameter as the control that fits its schema. */
export function SchemaField(props: FieldProps) {
  const { name, schema, required, lookup, value, onChange, depth = 0 } = props;
  const shape = shapeOf(schema, lookup);
  const label = required ? `${name} *` : name;
  const hint = hintOf(schema, lookup);

  const control = { label, hint, required, value, onChange };
  switch (shape.kind) {
    case 'object':
      if (depth >= maxDepth) return <JsonField {...props} label={label} hint={hint} />;
      return (
        <details className="nested" open={required || value !== undefined}>
          <summary>{label}</summary>
          {hint !== undefined && <p className="hint">{hint}</p>}
          <SchemaFields fields={shape.fields} lookup={lookup} value={value} onChange={onChange} depth={depth + 1} />
        </details>
      );
    case 'record':
    case 'items':
    case 'json':
      return <JsonField {...props} label={label} hint={hint} />;
    case 'choices':
      return <ChoicesField {...control} options={shape.options} />;
    case 'choice':
      return <ChoiceField {...control} options={shape.options} toValue={(text) => text} />;
    case 'boolean':
      return <ChoiceField {...control} options={['true', 'false']} toValue={(text) => text === 'true'} />;
    case 'number':
      return <NumberField {...control} shape={shape} />;
    case 'lines':
      return <LinesField {...control} />;
    case 'text':
      return <TextField {...control} long={shape.long || name === 'message'} />;
  }
}

interface ControlProps {
  readonly label: string;
  readonly hint: string | undefined;
  readonly required: boolean;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
}

function ChoicesField({ label, hint, value, onChange, options }: ControlProps & { readonly options: readonly string[] }) {
  return (
    <fieldset>
      <legend>{label}</legend>
      <div className="chips">
        {options.map((option) => {
          const list: readonly unknown[] = Array.isArray(value) ? value : [];
          const on = list.includes(option);
          return (
            <button
              key={option}
              type="button"
              className="chip"
              aria-pressed={on}
              onClick={() => onChange(on ? list.filter((one) => one !== option) : [...list, option])}
            >
              {option}
            </button>
          );
        })}
      </div>
      {hint !== undefined && <p className="hint">{hint}</p>}
    </fieldset>
  );
}

function ChoiceField({
  label,
  hint,
  required,
  value,
  onChange,
  options,
  toValue,
}: ControlProps & { readonly options: readonly string[]; readonly toValue: (text: string) => unknown }) {
  return (
    <Field label={label} hint={hint}>
      {(id, hintId) => (
        <select
          id={id}
          aria-describedby={hintId}
          value={value === undefined ? '' : String(value)}
          onChange={({ target: { value: text } }) => onChange(text === '' ? undefined : toValue(text))}
        >
          <option value="">{required ? t('Choose…') : t('(not set)')}</option>
          {options.map((option) => (
            <option key={option}>{option}</option>
          ))}
        </select>
      )}
    </Field>
  );
}

function NumberField({ label, hint, value, onChange, shape }: ControlProps & { readonly shape: Extract<FieldShape, { kind: 'number' }> }) {
  return (
    <Field label={label} hint={hint}>
      {(id, hintId) => (
        <input
          id={id}
          aria-describedby={hintId}
          type="number"
          min={shape.min}
          max={shape.max}
          step={shape.whole ? 1 : 'any'}
          value={typeof value === 'number' ? value : ''}
          onChange={({ target: { value: text } }) => onChange(text === '' ? undefined : Number(text))}
        />
      )}
    </Field>
  );
}

function LinesField({ label, hint, value, onChange }: ControlProps) {
  return (
    <Field label={label} hint={[hint, t('One per line.')].filter(Boolean).join(' ')}>
      {(id, hintId) => (
        <textarea
          id={id}
          aria-describedby={hintId}
          rows={2}
          value={Array.isArray(value) ? value.join('\n') : ''}
          onChange={({ target: { value: text } }) => onChange(text === '' ? undefined : text.split('\n'))}
        />
      )}
    </Field>
  );
}

function TextField({ label, hint, value, onChange, long }: ControlProps & { readonly long: boolean }) {
  return (
    <Field label={label} hint={hint} wide={long}>
      {(id, hintId) => {
        const text = typeof value === 'string' ? value : '';
        const change = ({ target }: { readonly target: { readonly value: string } }): void =>
          onChange(target.value === '' ? undefined : target.value);
        return long ? (
          <textarea id={id} aria-describedby={hintId} rows={3} value={text} onChange={change} />
        ) : (
          <input id={id} aria-describedby={hintId} spellCheck={false} value={text} onChange={change} />
        );
      }}
    </Field>
  );
}

/** The fields of one object; an object without any value is omitted. */
export function SchemaFields({
  fields,
  lookup,
  value,
  onChange,
  depth = 0,
}: {
  readonly fields: readonly { readonly name: string; readonly schema: Schema; readonly required: boolean }[];
  readonly lookup: Lookup;
  readonly value: unknown;
  readonly onChange: (value: Schema | undefined) => void;
  readonly depth?: number;
}) {
  const current = isSchema(value) ? value : {};
  return (
    <div className="schema-fields">
      {fields.map(({ name, schema, required }) => (
        <SchemaField
          key={name}
          name={name}
          schema={schema}
          required={required}
          lookup={lookup}
          value={current[name]}
          depth={depth}
          onChange={(one) => {
            const { [name]: _, ...rest } = current;
            const next = one === undefined ? rest : { ...rest, [name]: one };
            onChange(Object.keys(next).length === 0 ? undefined : next);
          }}
        />
      ))}
    </div>
  );
}

/** A JSON field that reports its value when the text is complete. Treats bare text as a string, which it usually is. */
function JsonField({ value, onChange, label, hint }: FieldProps & { readonly label: string; readonly hint: string | undefined }) {
  const [text, setText] = useState(() => (value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)));
  return (
    <Field label={label} hint={[hint, t('Text, or JSON.')].filter(Boolean).join(' ')}>
      {(id, hintId) => (
        <textarea
          id={id}
          className="mono"
          aria-describedby={hintId}
          rows={2}
          spellCheck={false}
          value={text}
          onChange={({ target }) => {
            setText(target.value);
            onChange(target.value.trim() === '' ? undefined : jsonOrText(target.value));
          }}
        />
      )}
    </Field>
  );
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
