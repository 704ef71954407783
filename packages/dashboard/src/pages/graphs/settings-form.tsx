import type { FieldErrors } from '../../data/field-errors.ts';
import { DraftField } from '../../ui/draft-field.tsx';
import { Field } from '../../ui/parts.tsx';
import type { GraphDraft } from './draft.ts';

/** Edits the settings of the whole graph. */
export function SettingsForm({
  draft,
  errors,
  onChange,
}: {
  readonly draft: GraphDraft;
  readonly errors: FieldErrors;
  readonly onChange: (part: Partial<GraphDraft>) => void;
}) {
  const number = (path: string, label: string, name: 'timeoutSeconds' | 'maxTokens' | 'maxCost', hint: string) => (
    <DraftField errors={errors} path={path} label={label} hint={hint}>
      {(own) => <input {...own} inputMode="decimal" value={draft[name]} onChange={(event) => onChange({ [name]: event.target.value })} />}
    </DraftField>
  );
  return (
    <section className="panel" aria-label="Graph settings">
      <h2>Settings</h2>
      <Field label="When a node fails">
        {(id) => (
          <select
            id={id}
            value={draft.onFailure}
            onChange={(event) => onChange({ onFailure: event.target.value === 'continue' ? 'continue' : 'fail-fast' })}
          >
            <option value="fail-fast">skip everything that depends on it</option>
            <option value="continue">let each dependent node decide</option>
          </select>
        )}
      </Field>
      {number('settings.timeout_ms', 'Timeout in seconds', 'timeoutSeconds', 'Default: 1500.')}
      <div className="field-pair">
        {number('settings.budget.maxTokens', 'Token limit', 'maxTokens', 'No more nodes start once it is exceeded.')}
        {number('settings.budget.maxCost', 'Cost limit in US dollars', 'maxCost', 'No more nodes start once it is exceeded.')}
      </div>
    </section>
  );
}
