import { t } from '../../language.ts';
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
    <section className="panel" aria-label={t('Graph settings')}>
      <h2>{t('Settings')}</h2>
      <Field label={t('When a node fails')}>
        {(id) => (
          <select
            id={id}
            value={draft.onFailure}
            onChange={(event) => onChange({ onFailure: event.target.value === 'continue' ? 'continue' : 'fail-fast' })}
          >
            <option value="fail-fast">{t('skip everything that depends on it')}</option>
            <option value="continue">{t('let each dependent node decide')}</option>
          </select>
        )}
      </Field>
      {number('settings.timeout_ms', t('Timeout in seconds'), 'timeoutSeconds', t('Default: 1500.'))}
      <div className="field-pair">
        {number('settings.budget.maxTokens', t('Token limit'), 'maxTokens', t('No more nodes start once it is exceeded.'))}
        {number('settings.budget.maxCost', t('Cost limit in US dollars'), 'maxCost', t('No more nodes start once it is exceeded.'))}
      </div>
    </section>
  );
}
