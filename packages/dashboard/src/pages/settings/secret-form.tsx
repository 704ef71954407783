import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { fieldErrors } from '../../data/field-errors.ts';
import { useAction } from '../../data/use-action.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { DraftField } from '../../ui/draft-field.tsx';
import { Button, Failure, Notice } from '../../ui/parts.tsx';
import type { Secret } from './secrets-tab.tsx';

/** Sets a secret: its value is sent once, and kept nowhere in the page. */
export function SecretForm({
  secret,
  taken,
  onClose,
  onDone,
}: {
  /** Undefined for a new one. */
  readonly secret: Secret | undefined;
  readonly taken: readonly string[];
  readonly onClose: () => void;
  readonly onDone: (outcome: string) => void;
}) {
  const { client } = useSession();
  const { busy, error, run } = useAction();
  const [name, setName] = useState(secret?.name ?? '');
  const [value, setValue] = useState('');
  const [isLong, setLong] = useState(false);
  const [provider, setProvider] = useState(secret?.provider ?? '');
  const [description, setDescription] = useState(secret?.description ?? '');
  const [ends, setEnds] = useState(secret?.expiresAt === undefined ? '' : new Date(secret.expiresAt).toISOString().slice(0, 10));
  const errors = fieldErrors(error);
  const replaces = secret === undefined && taken.includes(name);
  const save = async (): Promise<void> => {
    const result = await client.call('env.set', {
      key: name,
      value,
      ...(provider !== '' && { provider }),
      ...(description !== '' && { description }),
      ...(ends !== '' && { expiresAt: Date.parse(ends) }),
    });
    const parts = [
      t('Stored {key}.', { key: result.key }),
      result.shadowed === true ? t('A variable of the environment has this name, and wins.') : undefined,
      result.restart.length > 0 ? t('After a restart it is in force for {restart}.', { restart: result.restart.join(', ') }) : undefined,
      result.notApplied === undefined ? undefined : t('The configuration could not be read again: {notApplied}', { notApplied: result.notApplied }),
    ];
    onDone(parts.filter((part) => part !== undefined).join(' '));
  };
  return (
    <Dialog title={secret === undefined ? t('New secret') : t('Replace {name}', { name: secret.name })} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          run(save);
        }}
      >
        <div className="dialog-body">
          {secret === undefined && (
            <DraftField path="key" errors={errors} label={t('Name')} hint={t('Upper-case letters, digits and “_”, such as OPENAI_API_KEY.')}>
              {(own) => (
                <input
                  {...own}
                  className="mono"
                  required
                  spellCheck={false}
                  autoComplete="off"
                  value={name}
                  onChange={({ target }) => setName(target.value.toUpperCase().replaceAll(/[\s-]/g, '_'))}
                />
              )}
            </DraftField>
          )}
          {replaces && <Notice tone="warn">{t('A secret has this name already: its value is replaced.')}</Notice>}
          <DraftField path="value" errors={errors} label={t('Value')} hint={t('It is stored sealed, and never shown again.')}>
            {(own) =>
              isLong ? (
                <textarea
                  {...own}
                  className="mono"
                  required
                  rows={6}
                  spellCheck={false}
                  value={value}
                  onChange={({ target }) => setValue(target.value)}
                />
              ) : (
                <input
                  {...own}
                  type="password"
                  required
                  autoComplete="new-password"
                  value={value}
                  onChange={({ target }) => setValue(target.value)}
                />
              )
            }
          </DraftField>
          <label className="check">
            <input type="checkbox" checked={isLong} onChange={({ target }) => setLong(target.checked)} />
            {t('Several lines, such as a certificate; shown while you type')}
          </label>
          <div className="field-pair">
            <DraftField path="provider" errors={errors} label={t('Service')}>
              {(own) => <input {...own} autoComplete="off" value={provider} onChange={({ target }) => setProvider(target.value)} />}
            </DraftField>
            <DraftField path="expiresAt" errors={errors} label={t('Ends at its service')}>
              {(own) => <input {...own} type="date" value={ends} onChange={({ target }) => setEnds(target.value)} />}
            </DraftField>
          </div>
          <DraftField path="description" errors={errors} label={t('What it is for')}>
            {(own) => <input {...own} autoComplete="off" value={description} onChange={({ target }) => setDescription(target.value)} />}
          </DraftField>
        </div>
        {error !== undefined && errors.size === 0 && <Failure error={error} />}
        <footer>
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button submit look="primary" disabled={busy || name === '' || value === ''}>
            {busy ? t('Storing…') : t('Store')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
