import { t } from '../../language.ts';
import type { ParamsInput } from '@gatehouse/contract';
import type { ReactNode } from 'react';
import { Button, Failure, Field } from '../../ui/parts.tsx';
import type { Vetted } from './use-vetted.ts';

export type Scope = NonNullable<ParamsInput<'skills.create'>['scope']>;

/** The form of the skill dialogs: shows the vetting result, with a separate button to accept it. */
export function SkillForm({
  vetted,
  action,
  disabled = false,
  onClose,
  children,
}: {
  readonly vetted: Vetted;
  readonly action: string;
  readonly disabled?: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}) {
  const { busy, error, refusal } = vetted;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        vetted.run();
      }}
    >
      <div className="dialog-body">{children}</div>
      {error !== undefined && <Failure error={error} />}
      {refusal !== undefined && (
        <div className="dialog-body">
          <div className={refusal.confirm ? 'notice warn' : 'notice bad'} role="alert">
            <div>
              <strong>{refusal.confirm ? t('Review these findings before you accept them.') : t('Rejected.')}</strong>
              <p className="refusal">{refusal.message}</p>
            </div>
          </div>
        </div>
      )}
      <footer>
        <Button onClick={onClose}>{t('Cancel')}</Button>
        {refusal?.confirm === true && (
          <Button look="danger" disabled={busy} onClick={vetted.confirmed}>
            {t('Accept findings')}
          </Button>
        )}
        <Button submit look="primary" disabled={busy || disabled || refusal !== undefined}>
          {busy ? t('Vetting…') : action}
        </Button>
      </footer>
    </form>
  );
}

export function NameField({ name, onChange }: { readonly name: string; readonly onChange: (name: string) => void }) {
  return (
    <Field label={t('Name')} hint={t('Lower-case letters, digits and single -.')}>
      {(id, hint) => (
        <input
          id={id}
          aria-describedby={hint}
          required
          maxLength={64}
          pattern="[a-z0-9]+(-[a-z0-9]+)*"
          value={name}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

export function ScopeField({ scope, onChange }: { readonly scope: Scope; readonly onChange: (scope: Scope) => void }) {
  return (
    <Field label={t('Available to')}>
      {(id) => (
        <select id={id} value={scope} onChange={({ target: { value } }) => onChange(value === 'shared' ? 'shared' : 'local')}>
          <option value="local">{t('this agent')}</option>
          <option value="shared">{t('all agents')}</option>
        </select>
      )}
    </Field>
  );
}
