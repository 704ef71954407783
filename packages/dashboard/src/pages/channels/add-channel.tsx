import { t } from '../../language.ts';
import {
  type ChannelSetup,
  channelSetups,
  setupConflict,
  setupEntry,
  type SetupField,
  setupSecretName,
  type SetupValues,
} from '@gatehouse/contract/channel-setup';
import { useEffect, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure, Field, Notice } from '../../ui/parts.tsx';
import { channelEvents } from './channel-events.ts';

const platforms = Object.entries<ChannelSetup>(channelSetups);
const namePattern = '[a-z0-9]([a-z0-9_\\-]{0,30}[a-z0-9])?';

/** Connects a new channel: what the platform needs, the connection, and what to do then. */
export function AddChannel({ onClose, onAdded }: { readonly onClose: () => void; readonly onAdded: () => void }) {
  const [added, setAdded] = useState<string>();
  return (
    <Dialog title={t('Add a channel')} onClose={onClose} wide>
      {added === undefined ? (
        <SetupForm
          onClose={onClose}
          onAdded={(name) => {
            setAdded(name);
            onAdded();
          }}
        />
      ) : (
        <Connecting name={added} onClose={onClose} />
      )}
    </Dialog>
  );
}

function SetupForm({ onClose, onAdded }: { readonly onClose: () => void; readonly onAdded: (name: string) => void }) {
  const { client } = useSession();
  const { busy, error, run } = useAction();
  const [type, setType] = useState(platforms[0]?.[0] ?? '');
  const [name, setName] = useState('');
  const [values, setValues] = useState<Record<string, string>>({});
  const setup = platforms.find(([one]) => one === type)?.[1];
  if (setup === undefined) return null;
  const fields = setup.fields.filter(({ onlyWith }) => onlyWith === undefined || (values[onlyWith] ?? '') !== '');
  const add = () =>
    run(async () => {
      const conflict = setupConflict(type, name, (await client.call('channels.list', {})).channels);
      if (conflict !== undefined) throw new Error(conflict);
      for (const field of fields)
        if (field.kind === 'secret') await client.call('env.set', { key: setupSecretName(name, field), value: values[field.paths[0]] ?? '' });
      await client.call('config.set', { path: `channels.${name}`, value: setupEntry(type, name, fields, typed(fields, values)), confirm: true });
      onAdded(name);
    });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        add();
      }}
    >
      <div className="dialog-body">
        <Field label={t('Platform')}>
          {(id) => (
            <select
              id={id}
              value={type}
              onChange={(event) => {
                setType(event.target.value);
                setValues({});
              }}
            >
              {platforms.map(([one, { title }]) => (
                <option key={one} value={one}>
                  {title}
                </option>
              ))}
            </select>
          )}
        </Field>
        <ol className="hint">
          {setup.steps.map((step) => (
            <li key={step}>{step}</li>
          ))}
        </ol>
        <Field label={t('Name of the channel')} hint={t('Lower-case letters, digits, - and _')}>
          {(id, hintId) => (
            <input
              id={id}
              aria-describedby={hintId}
              required
              pattern={namePattern}
              autoComplete="off"
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        {fields.map((field) => (
          <SetupInput
            key={field.paths[0]}
            field={field}
            value={values[field.paths[0]] ?? ''}
            onChange={(value) => setValues({ ...values, [field.paths[0]]: value })}
          />
        ))}
      </div>
      {error !== undefined && <Failure error={error} />}
      <footer>
        <Button onClick={onClose}>{t('Cancel')}</Button>
        <Button submit look="primary" disabled={busy}>
          {busy ? t('Adding…') : t('Connect')}
        </Button>
      </footer>
    </form>
  );
}

interface InputProps {
  readonly field: SetupField;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function SetupInput({ field: { label, hint, kind, isRequired = false }, value, onChange }: InputProps) {
  if (kind === 'off')
    return (
      <label className="check">
        <input type="checkbox" checked={value === 'off'} onChange={(event) => onChange(event.target.checked ? 'off' : '')} /> {label}: {hint}
      </label>
    );
  return (
    <Field label={isRequired ? label : t('{label} (optional)', { label })} hint={kind === 'list' ? t('{hint}; several with commas', { hint }) : hint}>
      {(id, hintId) => (
        <input
          id={id}
          aria-describedby={hintId}
          type={kind === 'secret' ? 'password' : 'text'}
          inputMode={kind === 'number' ? 'numeric' : undefined}
          pattern={kind === 'number' ? '[0-9]{1,5}' : undefined}
          autoComplete="off"
          required={isRequired}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

/** Returns the values as the configuration has them. */
function typed(fields: readonly SetupField[], values: Readonly<Record<string, string>>): SetupValues {
  const found: Record<string, SetupValues[string]> = {};
  for (const { paths, kind } of fields) {
    const text = (values[paths[0]] ?? '').trim();
    if (text === '') continue;
    found[paths[0]] = kind === 'number' ? Number(text) : kind === 'off' ? false : kind === 'list' ? text.split(/\s*,\s*/).filter(Boolean) : text;
  }
  return found;
}

/** Shows whether the new channel connects, and what its first person does. */
function Connecting({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const { client } = useSession();
  const found = useLoad(['channels.health', name], (signal) => client.call('channels.health', {}, { signal }), { changedBy: channelEvents });
  const health = found.data?.channels.find(({ channelInstanceId }) => channelInstanceId === name);
  const isWaiting = health === undefined || health.state === 'startup-grace';
  const { reload } = found;
  useEffect(() => {
    if (!isWaiting) return undefined;
    const timer = setInterval(reload, 1_000);
    return () => clearInterval(timer);
  }, [isWaiting, reload]);
  return (
    <>
      <div className="dialog-body" role="status">
        {isWaiting && <p>{t('Connecting {name}…', { name })}</p>}
        {health?.state === 'healthy' && (
          <>
            <Notice tone="good">{health.account === null ? t('Connected.') : t('Connected as {account}.', { account: health.account })}</Notice>
            <p>{t('Write to the agent there. It answers with a code: enter the code under People to approve yourself.')}</p>
          </>
        )}
        {health !== undefined && !isWaiting && health.state !== 'healthy' && (
          <>
            <Notice tone="bad">{health.error ?? t('It does not connect.')}</Notice>
            <p>{t('It is in the configuration, and tries again unless the account was refused. Correct the values under Settings.')}</p>
          </>
        )}
      </div>
      <footer>
        <Button onClick={onClose}>{t('Done')}</Button>
      </footer>
    </>
  );
}
