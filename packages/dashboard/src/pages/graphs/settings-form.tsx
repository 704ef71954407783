import type { FieldErrors } from '../../data/field-errors.ts';
import { DraftField } from '../../ui/draft-field.tsx';
import { Field } from '../../ui/parts.tsx';
import type { GraphDraft } from './draft.ts';

/** What holds for the whole graph. */
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
    <section className="panel" aria-label="Settings of the graph">
      <h2>Settings</h2>
      <Field label="When a node fails">
        {(id) => (
          <select
            id={id}
            value={draft.onFailure}
            onChange={(event) => onChange({ onFailure: event.target.value === 'continue' ? 'continue' : 'fail-fast' })}
          >
            <option value="fail-fast">skip all that comes behind it</option>
            <option value="continue">let each node behind it decide</option>
          </select>
        )}
      </Field>
      {number('settings.timeout_ms', 'Seconds at most', 'timeoutSeconds', '1500 when empty.')}
      <div className="field-pair">
        {number('settings.budget.maxTokens', 'Tokens at most', 'maxTokens', 'Once passed, nothing more starts.')}
        {number('settings.budget.maxCost', 'US dollars at most', 'maxCost', 'The same in money.')}
      </div>
    </section>
  );
}
