import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, dateTime, isPast, plural } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { Badge, Button, Empty, Failure, IconButton, Notice, Skeleton } from '../../ui/parts.tsx';
import { valueAt } from '../../ui/schema/paths.ts';
import { SearchField } from '../../ui/search-field.tsx';
import { SecretForm } from './secret-form.tsx';
import type { Config } from '../../data/use-config.ts';

export type Secret = Result<'env.list'>['secrets'][number];

const mostListed = 500;
const pageSize = 100;

/** The secrets of the store: their names and where they are used, never their values. */
export function SecretsTab({ config }: { readonly config: Config }) {
  const { client } = useSession();
  const loaded = useLoad(['env.list'], (signal) => client.call('env.list', { limit: mostListed }, { signal }), {
    changedBy: ['secret:modified', 'config:patched'],
  });
  const [query, setQuery] = useState('');
  const [limit, setLimit] = useState(pageSize);
  const [editing, setEditing] = useState<Secret | 'new'>();
  const [removing, setRemoving] = useState<Secret>();
  const [outcome, setOutcome] = useState<string>();
  const isReadOnly = valueAt(config.inForce, ['secrets', 'readOnly']) === true;
  const { data } = loaded;
  const wanted = query.trim().toLowerCase();
  const secrets = (data?.secrets ?? []).filter(({ name, provider, description }) =>
    [name, provider, description].some((text) => text?.toLowerCase().includes(wanted) === true),
  );
  return (
    <>
      <div className="toolbar">
        <SearchField label={t('Search secrets')} value={query} onChange={setQuery} />
        {data !== undefined && (
          <span className="hint" role="status">
            {plural(secrets.length, 'secret')}
            {data.truncated && ` ${t('of the first {mostListed} of {total}', { mostListed, total: data.total })}`}
          </span>
        )}
        <span className="grow" />
        <Button icon="plus" look="primary" disabled={isReadOnly} onClick={() => setEditing('new')}>
          {t('New secret')}
        </Button>
      </div>
      <p className="hint">
        {tx(
          'Values are sealed with the key of this installation, and never shown again. config.yaml refers to them as {code}. At most 5 are set or removed per minute.',
          { code: <code>{'${NAME}'}</code> },
        )}
      </p>
      {isReadOnly && (
        <Notice tone="warn">
          <span>
            {tx('The store is read-only: secrets can be neither set nor removed until {code} is turned off in the configuration.', {
              code: <code>secrets.readOnly</code>,
            })}
          </span>
        </Notice>
      )}
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {loaded.error !== undefined && <Failure error={loaded.error} onRetry={loaded.reload} />}
      {data === undefined && loaded.loading && <Skeleton lines={6} />}
      {data?.total === 0 && (
        <Empty title={t('No secrets')}>
          <p>{t('Keys of providers, webhooks and servers belong here, not in config.yaml.')}</p>
        </Empty>
      )}
      {secrets.length > 0 && (
        <ul className="rows" aria-label={t('Secrets')}>
          {secrets.slice(0, limit).map((secret) => (
            <li key={secret.name} className="row">
              <div className="row-main">
                <span className="row-title mono">{secret.name}</span>
                <p className="facts-line">
                  {secret.description !== undefined && <span dir="auto">{secret.description}</span>}
                  {secret.provider !== undefined && <span>{secret.provider}</span>}
                  <span title={dateTime(secret.updatedAt)}>{tx('changed {updatedAt}', { updatedAt: ago(secret.updatedAt) })}</span>
                  {secret.usedBy.length > 0 ? (
                    <span>{tx('used by {span}', { span: <span className="mono">{listed(secret.usedBy)}</span> })}</span>
                  ) : (
                    <span>{t('not used by config.yaml')}</span>
                  )}
                </p>
              </div>
              <div className="row-facts">
                {secret.shadowed === true && <Badge tone="warn">{t('the environment wins')}</Badge>}
                {secret.unreadable === true && <Badge tone="bad">{t('unreadable: set it again')}</Badge>}
                {secret.expiresAt !== undefined && (
                  <Badge tone={isPast(secret.expiresAt) ? 'bad' : 'neutral'}>
                    {`${isPast(secret.expiresAt) ? 'ended' : 'ends'} ${ago(secret.expiresAt)}`}
                  </Badge>
                )}
              </div>
              <div className="row-actions">
                <IconButton icon="edit" label={t('Replace {name}', { name: secret.name })} disabled={isReadOnly} onClick={() => setEditing(secret)} />
                <IconButton
                  icon="trash"
                  label={t('Remove {name}', { name: secret.name })}
                  disabled={isReadOnly}
                  onClick={() => setRemoving(secret)}
                />
              </div>
            </li>
          ))}
        </ul>
      )}
      {secrets.length > limit && (
        <Button onClick={() => setLimit(limit + pageSize)}>{t('Show more ({secrets})', { secrets: secrets.length - limit })}</Button>
      )}
      {editing !== undefined && (
        <SecretForm
          secret={editing === 'new' ? undefined : editing}
          taken={data?.secrets.map(({ name }) => name) ?? []}
          onClose={() => setEditing(undefined)}
          onDone={(text) => {
            setEditing(undefined);
            setOutcome(text);
            loaded.reload();
          }}
        />
      )}
      {removing !== undefined && (
        <Confirm
          title={t('Remove {name}?', { name: removing.name })}
          action={t('Remove')}
          onClose={() => setRemoving(undefined)}
          run={async () => {
            await client.call('env.remove', { key: removing.name });
            setOutcome(t('Removed {name}.', { name: removing.name }));
            loaded.reload();
          }}
        >
          <p>{t("The value can't be restored. A secret that config.yaml refers to is not removed.")}</p>
        </Confirm>
      )}
    </>
  );
}

function listed(keys: readonly string[]): string {
  return keys.length > 3 ? t('{keys} and {keys2} more', { keys: keys.slice(0, 3).join(', '), keys2: keys.length - 3 }) : keys.join(', ');
}
