import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import type { VendorOffer } from '@gatehouse/contract/vendor-list';
import { placeProvider, testProvider, selectModel } from '@gatehouse/client/connect-model';
import { type FormEvent, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { useVendors } from '../../data/vendors.ts';
import { Button, Failure, Field, Notice } from '../../ui/parts.tsx';

type Tested = Result<'providers.test'>;

const groups: readonly { readonly kind: VendorOffer['kind']; readonly label: string }[] = [
  { kind: 'hosted', label: t('Hosted') },
  { kind: 'local', label: t('On this machine') },
  { kind: 'own', label: t('Your own address') },
];

/** Vendor, address and key, a real test, and the model. Nothing is stored before the test has succeeded. */
export function ModelStep({
  current,
  onBegin,
  onConnected,
}: {
  readonly current: string | undefined;
  readonly onBegin: () => void;
  readonly onConnected: () => void;
}) {
  const { client, health } = useSession();
  const { data: vendors = [] } = useVendors();
  const [vendor, setVendor] = useState<VendorOffer>();
  const [address, setAddress] = useState('');
  const [key, setKey] = useState('');
  const [tested, setTested] = useState<Tested>();
  const [model, setModel] = useState('');
  const testing = useAction();
  const storing = useAction();
  const busy = testing.busy || storing.busy;

  // A result is about exactly what was entered.
  const enter = (change: () => void): void => {
    change();
    setTested(undefined);
    setModel('');
    testing.clearError();
    storing.clearError();
  };

  const place = async () => {
    if (vendor === undefined) throw new Error('No vendor is selected.');
    const { providers } = await client.call('providers.list', {});
    return placeProvider({ type: vendor.type, baseUrl: address.trim() || undefined, key: key.trim() || undefined }, providers);
  };

  const test = async (): Promise<void> => {
    setTested(undefined);
    const result = await testProvider(client, await place(), { model: model.trim() || undefined });
    setTested(result);
    // The model that was called, unless it is the one that does not exist.
    setModel(result.verdict === 'model_unknown' ? (result.models[0] ?? '') : result.model);
  };

  const connect = async (): Promise<void> => {
    onBegin();
    await selectModel(client, await place(), model.trim());
    health.ask();
    onConnected();
  };

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!busy && vendor !== undefined) testing.run(test);
  };

  return (
    <form className="start-form" onSubmit={submit}>
      {current !== undefined && <Notice>{t('{current} is connected. Another model takes its place for the default agent.', { current })}</Notice>}
      <Field label={t('Vendor')}>
        {(field) => (
          <select
            id={field}
            value={vendor?.type ?? ''}
            onChange={(event) =>
              enter(() => {
                setVendor(vendors.find(({ type }) => type === event.target.value));
                setAddress('');
              })
            }
          >
            <option value="" disabled>
              {t('Choose a vendor or a local server')}
            </option>
            {groups.map(({ kind, label }) => (
              <optgroup key={kind} label={label}>
                {vendors
                  .filter((one) => one.kind === kind)
                  .map(({ type, name }) => (
                    <option key={type} value={type}>
                      {name}
                    </option>
                  ))}
              </optgroup>
            ))}
          </select>
        )}
      </Field>
      {vendor !== undefined && vendor.kind !== 'hosted' && (
        <Field
          label={t('Address')}
          hint={vendor.kind === 'local' ? t('Leave it empty for {address}.', { address: vendor.address }) : t('Most end in /v1.')}
        >
          {(field, hint) => (
            <input
              id={field}
              aria-describedby={hint}
              type="url"
              required={vendor.kind === 'own'}
              placeholder={vendor.address ?? 'https://models.example.com/v1'}
              value={address}
              onChange={(event) => enter(() => setAddress(event.target.value))}
            />
          )}
        </Field>
      )}
      {vendor !== undefined && vendor.kind !== 'local' && <KeyField vendor={vendor} value={key} change={(value) => enter(() => setKey(value))} />}
      {vendor !== undefined && (
        <div className="start-actions">
          <Button submit look={tested !== undefined && works(tested) ? 'plain' : 'primary'} disabled={busy}>
            {testing.busy ? t('Testing…') : tested === undefined ? t('Test') : t('Test again')}
          </Button>
          <span className="hint">{t('One short, real call. Nothing is stored yet.')}</span>
        </div>
      )}
      {testing.error !== undefined && <Failure error={testing.error} />}
      <div role="status">{tested !== undefined && <Verdict tested={tested} />}</div>
      {tested !== undefined && (works(tested) || tested.verdict === 'model_unknown') && (
        <ModelField tested={tested} value={model} change={setModel} />
      )}
      {tested !== undefined && mayBeUsed(tested) && (
        <div className="start-actions">
          <Button look="primary" disabled={busy || model.trim() === ''} onClick={() => storing.run(connect)}>
            {storing.busy ? t('Connecting…') : works(tested) ? t('Use this model and say hello') : t('Connect it anyway')}
          </Button>
        </div>
      )}
      {storing.error !== undefined && <Failure error={storing.error} />}
    </form>
  );
}

function KeyField({ vendor, value, change }: { readonly vendor: VendorOffer; readonly value: string; readonly change: (value: string) => void }) {
  return (
    <Field
      label={t('API key')}
      hint={
        vendor.kind === 'own'
          ? t('Leave it empty if the server needs none. It is stored encrypted and never shown again.')
          : t('It is stored encrypted and never shown again.')
      }
    >
      {(field, hint) => (
        <>
          <input
            id={field}
            aria-describedby={hint}
            type="password"
            autoComplete="off"
            spellCheck={false}
            required={vendor.kind === 'hosted'}
            value={value}
            onChange={(event) => change(event.target.value)}
          />
          {vendor.keyPage !== undefined && (
            <a className="start-aside" href={vendor.keyPage} target="_blank" rel="noreferrer">
              {tx('Get a key from {name}', { name: vendor.name })}
            </a>
          )}
        </>
      )}
    </Field>
  );
}

function Verdict({ tested }: { readonly tested: Tested }) {
  const { message, cause, nextStep } = tested;
  return (
    <Notice tone={works(tested) ? 'good' : 'bad'}>
      <div>
        <strong>{message}.</strong>
        {cause !== undefined && <p className="start-cause">{cause}</p>}
        {nextStep !== undefined && <p>{nextStep}.</p>}
      </div>
    </Notice>
  );
}

function ModelField({
  tested: { models, model, verdict },
  value,
  change,
}: {
  readonly tested: Tested;
  readonly value: string;
  readonly change: (value: string) => void;
}) {
  const names = models.includes(model) || models.length === 0 || verdict === 'model_unknown' ? models : [model, ...models];
  return (
    <Field label={t('Model')} hint={names.length === 0 ? t('The provider lists no models: write the name as it uses it.') : undefined}>
      {(field, hint) =>
        names.length === 0 ? (
          <input id={field} aria-describedby={hint} value={value} onChange={(event) => change(event.target.value)} />
        ) : (
          <select id={field} value={value} onChange={(event) => change(event.target.value)}>
            {names.map((name) => (
              <option key={name} value={name}>
                {name === model && verdict !== 'model_unknown' ? t('{name} (tested)', { name }) : name}
              </option>
            ))}
          </select>
        )
      }
    </Field>
  );
}

const works = ({ verdict }: Tested): boolean => verdict === 'ok' || verdict === 'slow';
/** Key and address are right in the last two: the model answers later. */
const mayBeUsed = (tested: Tested): boolean => works(tested) || tested.verdict === 'no_credit' || tested.verdict === 'rate_limited';
