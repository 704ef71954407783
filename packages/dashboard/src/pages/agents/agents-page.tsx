import type { Client } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useLoad } from '../../data/use-load.ts';
import { navigate } from '../../router.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { PageLink } from '../../ui/link.tsx';
import { AdminOnly, Badge, Button, Failure, IconButton, Page, Skeleton } from '../../ui/parts.tsx';
import { AgentForm } from './agent-form.tsx';
import { ModelTable } from './model-table.tsx';
import { useProviderStates } from './provider-state.tsx';
import { SearchField } from '../../ui/search-field.tsx';

export type Agent = Result<'agents.get'>;
export type Provider = Extract<Result<'models.list'>, { providers: unknown }>['providers'][number];

interface Overview {
  readonly ids: readonly string[];
  readonly providers: readonly Provider[];
}

/** Each card is a request that counts against the rate limit of the token, so only visible ones are loaded. */
const pageSize = 12;

async function loadOverview(client: Client, signal: AbortSignal): Promise<Overview> {
  const [agents, models] = await client.batch([{ method: 'agents.list' }, { method: 'models.list' }], { signal });
  if (!agents.ok) throw agents.error;
  if (!models.ok) throw models.error;
  return { ids: agents.result.agents, providers: 'providers' in models.result ? models.result.providers : [] };
}

async function loadAgents(client: Client, ids: readonly string[], signal: AbortSignal): Promise<readonly Agent[]> {
  if (ids.length === 0) return [];
  const outcomes = await client.batch(
    ids.map((agentId) => ({ method: 'agents.get', params: { agentId } }) as const),
    { signal },
  );
  const failed = outcomes.find((outcome) => !outcome.ok && outcome.error.code !== 'not_found');
  if (failed !== undefined && !failed.ok) throw failed.error;
  // An agent deleted between the two requests is skipped.
  return outcomes.flatMap((outcome) => (outcome.ok ? [outcome.result] : []));
}

export function AgentsPage() {
  const { admin } = useSession();
  return admin ? <Overview /> : <AdminOnly title="Agents & models" />;
}

function Overview() {
  const { client, chats, defaultAgentId } = useSession();
  const states = useProviderStates();
  const overview = useLoad('agents', (signal) => loadOverview(client, signal));
  const [known, setKnown] = useState<ReadonlyMap<string, Agent>>(new Map());
  const [query, setQuery] = useState('');
  const [limit, setLimit] = useState(pageSize);
  const [editing, setEditing] = useState<Agent | 'new'>();
  const [removing, setRemoving] = useState<Agent>();
  const [error, setError] = useState<unknown>();
  const { data } = overview;
  const wanted = query.trim().toLocaleLowerCase();
  const found = (data?.ids ?? [])
    .filter((id) => `${id} ${known.get(id)?.config.name ?? ''}`.toLocaleLowerCase().includes(wanted))
    .toSorted((a, b) => Number(b === defaultAgentId) - Number(a === defaultAgentId));
  const shown = found.slice(0, limit);
  const put = (agents: readonly Agent[]): void => setKnown((before) => new Map([...before, ...agents.map((one) => [one.agentId, one] as const)]));
  const missing = shown.filter((id) => !known.has(id));
  const cards = useLoad(`agents ${missing.join(' ')}`, async (signal) => put(await loadAgents(client, missing, signal)));

  const refresh = async (agentId: string): Promise<void> => put([await client.call('agents.get', { agentId })]);
  const change = (agentId: string, run: Promise<unknown>): void => {
    setError(undefined);
    run.then(() => refresh(agentId)).catch(setError);
  };
  const models = (data?.providers ?? []).flatMap(({ name, models: listed }) => listed.map(({ modelId }) => `${name}/${modelId}`));

  return (
    <Page
      title="Agents & models"
      lead="Agents and the models they use."
      actions={
        <Button icon="plus" look="primary" onClick={() => setEditing('new')} disabled={data === undefined}>
          New agent
        </Button>
      }
    >
      {error !== undefined && <Failure error={error} />}
      {overview.error !== undefined && <Failure error={overview.error} onRetry={overview.reload} />}
      {data === undefined && overview.loading && <Skeleton lines={6} />}
      {data !== undefined && (
        <>
          <div className="toolbar">
            <h2>Agents</h2>
            {data.ids.length > pageSize && <SearchField label="Search agents" value={query} onChange={setQuery} />}
          </div>
          {cards.error !== undefined && <Failure error={cards.error} onRetry={cards.reload} />}
          {found.length === 0 && <p className="hint">No matching agents.</p>}
          {missing.length > 0 && cards.error === undefined && known.size === 0 && <Skeleton lines={6} />}
          <ul className="cards">
            {shown
              .flatMap((id) => known.get(id) ?? [])
              .map((agent) => (
                <li key={agent.agentId} className="card">
                  <AgentCard
                    agent={agent}
                    onChat={() => {
                      chats.begin(agent.agentId);
                      navigate('/chat');
                    }}
                    onEdit={() => setEditing(agent)}
                    onRemove={() => setRemoving(agent)}
                    onSwitch={() => {
                      const { agentId } = agent;
                      change(agentId, agent.suspended ? client.call('agents.resume', { agentId }) : client.call('agents.suspend', { agentId }));
                    }}
                  />
                </li>
              ))}
          </ul>
          {found.length > shown.length && (
            <div>
              <Button onClick={() => setLimit(limit + pageSize)}>Show more ({found.length - shown.length})</Button>
            </div>
          )}
          <h2>Models</h2>
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
            setError(undefined);
            refresh(agentId).then(overview.reload, setError);
          }}
        />
      )}
      {removing !== undefined && (
        <Confirm
          title={`Delete agent ${removing.config.name} (${removing.agentId})?`}
          action="Delete"
          onClose={() => setRemoving(undefined)}
          run={async () => {
            await client.call('agents.delete', { agentId: removing.agentId });
            overview.reload();
          }}
        >
          <p>The agent accepts no more messages. Its conversations are kept.</p>
        </Confirm>
      )}
    </Page>
  );
}

function AgentCard({
  agent,
  onChat,
  onEdit,
  onRemove,
  onSwitch,
}: {
  readonly agent: Agent;
  readonly onChat: () => void;
  readonly onEdit: () => void;
  readonly onRemove: () => void;
  readonly onSwitch: () => void;
}) {
  const { agentId, config, source, suspended, isDefault } = agent;
  return (
    <>
      <header>
        <h3>
          <PageLink to={`/agents/${encodeURIComponent(agentId)}`}>{config.name}</PageLink> <span className="mono hint">{agentId}</span>
        </h3>
        <Badge tone={suspended ? 'warn' : 'good'}>{suspended ? 'Suspended' : 'Active'}</Badge>
      </header>
      <dl className="facts">
        <dt>Model</dt>
        <dd className="mono">{config.model ?? 'first found'}</dd>
        {config.fallbackModels.length > 0 && (
          <>
            <dt>Fallbacks</dt>
            <dd className="mono">{config.fallbackModels.join(', ')}</dd>
          </>
        )}
        <dt>Tools</dt>
        <dd>{config.tools.profile}</dd>
        <dt>Steps</dt>
        <dd>up to {config.maxSteps}</dd>
      </dl>
      <footer>
        {isDefault && <Badge tone="accent">Default</Badge>}
        <Badge>{source === 'file' ? 'config.yaml' : 'stored'}</Badge>
        <span className="grow" />
        {!suspended && <IconButton icon="chat" label={`Chat with ${agentId}`} onClick={onChat} />}
        <IconButton icon={suspended ? 'play' : 'pause'} label={suspended ? `Resume ${agentId}` : `Suspend ${agentId}`} onClick={onSwitch} />
        <IconButton icon="edit" label={`Edit ${agentId}`} onClick={onEdit} />
        {!isDefault && source === 'stored' && <IconButton icon="trash" label={`Delete ${agentId}`} onClick={onRemove} />}
      </footer>
    </>
  );
}
