import { t, tx } from '../../language.ts';
import { useId } from 'react';
import { errorOf } from '../../data/field-errors.ts';
import { hiddenSecret } from './changes.ts';
import { useSettingForm } from './form.ts';
import { JsonControl } from './setting-control.tsx';
import type { SettingProps } from './setting-props.tsx';

/** A section as JSON, as config.yaml says it: without defaults. */
export function JsonPart({ setting, value, errors }: Pick<SettingProps, 'setting' | 'value' | 'errors'>) {
  const form = useSettingForm();
  const id = useId();
  const message = errorOf(errors, setting.id);
  return (
    <div className="setting-json">
      <label htmlFor={id} className="visually-hidden">
        {t('{title} as JSON', { title: setting.title })}
      </label>
      <JsonControl
        setting={setting}
        value={value}
        fallback={undefined}
        rows={10}
        error={message}
        own={{
          id,
          'aria-describedby': message === undefined ? `${id}-hint` : `${id}-error ${id}-hint`,
          'aria-invalid': message === undefined ? undefined : true,
        }}
        onChange={(next) => form.set(setting, next)}
        onProblem={(problem) => form.report(setting.id, problem)}
      />
      {message !== undefined && (
        <p className="field-error" id={`${id}-error`}>
          {message}
        </p>
      )}
      <p className="hint" id={`${id}-hint`}>
        {tx('Only what is set; everything else has its default. {hiddenSecret} keeps a secret as it is.', { hiddenSecret })}
      </p>
    </div>
  );
}
