import { t } from '../../language.ts';
import type { Client } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { AdminOnly, Button, Failure, Page, Skeleton } from '../../ui/parts.tsx';
import type { Agent } from './agent-card.tsx';
import { AgentCards, pageSize, useAgentCards } from './agent-cards.tsx';
import { AgentForm } from './agent-form.tsx';
import { ModelTable } from './model-table.tsx';
import { useProviderStates } from './provider-state.tsx';
import { SearchField } from '../../ui/search-field.tsx';

export type Provider = Extract<Result<'models.list'>, { providers: unknown }>['providers'][number];

interface Overview {
  readonly ids: readonly string[];
  readonly providers: readonly Provider[];
}

async function loadOverview(client: Client, signal: AbortSignal): Promise<Overview> {
  const [agents, models] = await client.batch([{ method: 'agents.list' }, { method: 'models.list' }], { signal });
  if (!agents.ok) throw agents.error;
  if (!models.ok) throw models.error;
  return { ids: agents.result.agents, providers: 'providers' in models.result ? models.result.providers : [] };
}

export function AgentsPage() {
  const { admin } = useSession();
  return admin ? <Overview /> : <AdminOnly title={t('Agents & models')} />;
}

function Overview() {
  const { client } = useSession();
  const states = useProviderStates();
  const overview = useLoad(['agents.list', 'models.list'], (signal) => loadOverview(client, signal));
  const { data } = overview;
  const [query, setQuery] = useState('');
  const cards = useAgentCards(data?.ids ?? [], query);
  const [editing, setEditing] = useState<Agent | 'new'>();
  const [removing, setRemoving] = useState<Agent>();
  const switching = useAction();
  const suspend = async ({ agentId, suspended }: Agent): Promise<void> => {
    await client.call(suspended ? 'agents.resume' : 'agents.suspend', { agentId });
    await cards.refresh(agentId);
  };
  const models = (data?.providers ?? []).flatMap(({ name, models: listed }) => listed.map(({ modelId }) => `${name}/${modelId}`));

  return (
    <Page
      title={t('Agents & models')}
      lead={t('Agents and the models they use.')}
      actions={
        <Button icon="plus" look="primary" onClick={() => setEditing('new')} disabled={data === undefined}>
          {t('New agent')}
        </Button>
      }
    >
      {switching.error !== undefined && <Failure error={switching.error} />}
      {overview.error !== undefined && <Failure error={overview.error} onRetry={overview.reload} />}
      {data === undefined && overview.loading && <Skeleton lines={6} />}
      {data !== undefined && (
        <>
          <div className="toolbar">
            <h2>{t('Agents')}</h2>
            {data.ids.length > pageSize && <SearchField label={t('Search agents')} value={query} onChange={setQuery} />}
          </div>
          <AgentCards cards={cards} onEdit={setEditing} onRemove={setRemoving} onSwitch={(agent) => switching.run(() => suspend(agent))} />
          <h2>{t('Models')}</h2>
          {states.error !== undefined && <Failure error={states.error} onRetry={states.reload} />}
          {data.providers.map((provider) => (
            <ModelTable
              key={provider.name}
              provider={provider}
              state={states.data?.find((one) => one.provider === provider.name)}
              onChanged={states.reload}
            />
          ))}
        </>
      )}
      {editing !== undefined && (
        <AgentForm
          agent={editing === 'new' ? undefined : editing}
          models={models}
          onClose={() => setEditing(undefined)}
          onDone={(agentId) => {
            setEditing(undefined);
            switching.run(() => cards.refresh(agentId).then(overview.reload));
          }}
        />
      )}
      {removing !== undefined && (
        <Confirm
          title={t('Delete agent {name} ({agentId})?', { name: removing.config.name, agentId: removing.agentId })}
          action={t('Delete')}
          onClose={() => setRemoving(undefined)}
          run={async () => {
            await client.call('agents.delete', { agentId: removing.agentId });
            overview.reload();
          }}
        >
          <p>{t('The agent accepts no more messages. Its conversations are kept.')}</p>
        </Confirm>
      )}
    </Page>
  );
}
