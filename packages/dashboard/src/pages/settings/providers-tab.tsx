import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { Button, Empty, Failure, Notice, Skeleton } from '../../ui/parts.tsx';
import { type ProviderState, useProviderStates } from '../agents/provider-state.tsx';
import { ProviderCard } from './provider-card.tsx';
import { ProviderForm } from './provider-form.tsx';
import type { Config } from '../../data/use-config.ts';

/** The model providers: added, tested, changed and removed, with the state of each key. */
export function ProvidersTab({ config }: { readonly config: Config }) {
  const { client } = useSession();
  const states = useProviderStates();
  const [editing, setEditing] = useState<ProviderState | 'new'>();
  const [removing, setRemoving] = useState<ProviderState>();
  const [outcome, setOutcome] = useState<string>();
  const { data } = states;
  return (
    <>
      <div className="toolbar">
        <p className="hint grow">{t('Models are used as provider/model. Keys are kept in the secret store.')}</p>
        <Button icon="plus" look="primary" onClick={() => setEditing('new')}>
          {t('Add a provider')}
        </Button>
      </div>
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {states.error !== undefined && <Failure error={states.error} onRetry={states.reload} />}
      {data === undefined && states.loading && <Skeleton lines={6} />}
      {data?.length === 0 && (
        <Empty title={t('No model provider is connected')}>
          <p>{t('Add one to let the agents answer.')}</p>
        </Empty>
      )}
      {data?.map((provider) => (
        <ProviderCard
          key={provider.provider}
          provider={provider}
          onChanged={states.reload}
          onEdit={() => setEditing(provider)}
          onRemove={() => setRemoving(provider)}
        />
      ))}
      {editing !== undefined && (
        <ProviderForm
          provider={editing === 'new' ? undefined : editing}
          taken={data?.map(({ provider }) => provider) ?? []}
          config={config}
          onClose={() => setEditing(undefined)}
          onDone={(text) => {
            setEditing(undefined);
            setOutcome(text);
            states.reload();
          }}
        />
      )}
      {removing !== undefined && (
        <Confirm
          title={t('Remove {provider}?', { provider: removing.provider })}
          action={t('Remove')}
          onClose={() => setRemoving(undefined)}
          run={async () => {
            await client.call('providers.remove', { provider: removing.provider });
            setOutcome(t('Removed {provider}. A stored key stays under Secrets.', { provider: removing.provider }));
            states.reload();
          }}
        >
          <p>{t("Its models can't be used any more. A provider that agents use is not removed.")}</p>
        </Confirm>
      )}
    </>
  );
}
