import { t } from '../../language.ts';
import type { ParamsInput, Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { fieldErrors } from '../../data/field-errors.ts';
import { useAction } from '../../data/use-action.ts';
import { useVendors } from '../../data/vendors.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { DraftField } from '../../ui/draft-field.tsx';
import { Button, Failure } from '../../ui/parts.tsx';
import { valueAt } from '../../ui/schema/paths.ts';
import type { ProviderState } from '../agents/provider-state.tsx';
import { type ModelDraft, ModelRows, toDrafts, toModels } from './model-rows.tsx';
import { TestOutcome } from './provider-card.tsx';
import type { Config } from '../../data/use-config.ts';

type ProviderSet = ParamsInput<'providers.set'>;

/** Adds a provider, or changes one. The key is sent once, and goes to the secret store. */
export function ProviderForm({
  provider,
  taken,
  config,
  onClose,
  onDone,
}: {
  /** Undefined for a new one. */
  readonly provider: ProviderState | undefined;
  readonly taken: readonly string[];
  readonly config: Config;
  readonly onClose: () => void;
  readonly onDone: (outcome: string) => void;
}) {
  const { client } = useSession();
  const vendors = useVendors().data ?? [];
  const { running, error, run } = useAction();
  const entry = provider === undefined ? undefined : valueAt(config.written, ['providers', provider.provider]);
  const storedUrl = valueAt(entry, ['baseUrl']);
  const [type, setType] = useState<ProviderSet['type']>(provider?.type ?? 'openai');
  const [id, setId] = useState(provider?.provider ?? '');
  const [baseUrl, setBaseUrl] = useState(typeof storedUrl === 'string' ? storedUrl : '');
  const [key, setKey] = useState('');
  const [isFurther, setFurther] = useState(false);
  const [dropped, setDropped] = useState<readonly string[]>([]);
  const [models, setModels] = useState<readonly ModelDraft[]>(() => toDrafts(valueAt(entry, ['models'])));
  const [storedModels] = useState(models);
  const [test, setTest] = useState<Result<'providers.test'>>();
  const errors = fieldErrors(error);
  const vendor = vendors.find((one) => one.type === type);
  const shownId = id === '' ? type : id;
  const exists = provider === undefined && taken.includes(shownId);
  const keys = (provider?.keys ?? []).filter(({ id: one }) => !dropped.includes(one));
  const hasNewUrl = baseUrl !== '' && baseUrl !== storedUrl;

  const check = async (): Promise<void> => {
    setTest(undefined);
    setTest(
      await client.call('providers.test', {
        candidate: { type, ...(baseUrl !== '' && { baseUrl }), ...(key !== '' && { key }) },
        ...(models[0] !== undefined && models[0].id !== '' && { model: models[0].id }),
      }),
    );
  };
  const save = async (): Promise<void> => {
    const done = await client.call('providers.set', {
      id: shownId,
      type,
      ...(hasNewUrl && { baseUrl }),
      ...(key !== '' && (isFurther ? { addKeys: [key] } : { key })),
      ...(dropped.length > 0 && { removeKeys: [...dropped] }),
      ...(models !== storedModels && { models: toModels(models) }),
    });
    const name = done.key ?? done.addedKeys?.[0];
    onDone(
      `${provider === undefined ? t('Added') : t('Changed')} ${shownId}.${name === undefined ? '' : ` ${t('Its key is stored as {name}.', { name })}`}`,
    );
  };
  return (
    <Dialog title={provider === undefined ? t('Add a provider') : t('Change {provider}', { provider: provider.provider })} onClose={onClose} wide>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          run(save, 'save');
        }}
      >
        <div className="dialog-body">
          <div className="field-pair">
            <DraftField path="type" errors={errors} label={t('Vendor')}>
              {(own) => (
                <select
                  {...own}
                  disabled={provider !== undefined}
                  value={type}
                  onChange={({ target }) => setType(typeOf(target.value, vendors) ?? type)}
                >
                  {vendors.length === 0 && <option value={type}>{type}</option>}
                  {vendors.map((one) => (
                    <option key={one.type} value={one.type}>
                      {one.name}
                    </option>
                  ))}
                </select>
              )}
            </DraftField>
            <DraftField
              path="id"
              errors={errors}
              label={t('Name')}
              hint={exists ? t('Exists already: it would be changed.') : t('Models are used as name/model.')}
            >
              {(own) => (
                <input
                  {...own}
                  disabled={provider !== undefined}
                  placeholder={type}
                  spellCheck={false}
                  autoComplete="off"
                  value={id}
                  onChange={({ target }) => setId(target.value)}
                />
              )}
            </DraftField>
          </div>
          <DraftField
            path="key"
            errors={errors}
            label={keys.length > 0 ? t('New key') : t('Key')}
            hint={
              keys.length > 0
                ? t('Leave it empty to keep the keys.')
                : vendor?.kind === 'local'
                  ? t('A server of this machine mostly needs none.')
                  : vendor?.keyPage === undefined
                    ? undefined
                    : t('Keys of {name}: {keyPage}', { name: vendor.name, keyPage: vendor.keyPage })
            }
          >
            {(own) => <input {...own} type="password" autoComplete="new-password" value={key} onChange={({ target }) => setKey(target.value)} />}
          </DraftField>
          {keys.length > 0 && key !== '' && (
            <label className="check">
              <input type="checkbox" checked={isFurther} onChange={({ target }) => setFurther(target.checked)} />
              {t('In addition to the others, which take over when it is refused or has to wait')}
            </label>
          )}
          {keys.length > 1 && (
            <ul className="chips" aria-label={t('Keys')}>
              {keys.map((one) => (
                <li key={one.id}>
                  <button
                    type="button"
                    className="chip"
                    aria-label={t('Remove key {name}', { name: one.name ?? one.id })}
                    onClick={() => setDropped([...dropped, one.id])}
                  >{`${one.name ?? one.id} ×`}</button>
                </li>
              ))}
            </ul>
          )}
          <DraftField
            path="baseUrl"
            errors={errors}
            label={t('Base URL')}
            hint={vendor?.kind === 'own' ? t('Required.') : t("The vendor's own when empty.")}
          >
            {(own) => (
              <input
                {...own}
                inputMode="url"
                spellCheck={false}
                autoComplete="off"
                placeholder={vendor?.address ?? provider?.baseUrl ?? 'https://'}
                value={baseUrl}
                onChange={({ target }) => setBaseUrl(target.value)}
              />
            )}
          </DraftField>
          <ModelRows models={models} errors={errors} suggestions={test?.models ?? []} onChange={setModels} />
          <div role="status">{test !== undefined && <TestOutcome test={test} />}</div>
        </div>
        {error !== undefined && errors.size === 0 && <Failure error={error} />}
        <footer>
          <Button disabled={running !== undefined || (provider !== undefined && key === '' && !hasNewUrl)} onClick={() => run(check, 'test')}>
            {running === 'test' ? t('Testing…') : t('Test')}
          </Button>
          <span className="grow" />
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button submit look="primary" disabled={running !== undefined}>
            {running === 'save' ? t('Saving…') : provider === undefined ? t('Add') : t('Save')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

function typeOf(value: string, vendors: readonly { readonly type: ProviderSet['type'] }[]): ProviderSet['type'] | undefined {
  return vendors.find(({ type }) => type === value)?.type;
}
