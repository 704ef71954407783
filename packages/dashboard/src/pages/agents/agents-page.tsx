import type { Client } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useLoad } from '../../data/use-load.ts';
import { navigate } from '../../router.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { AdminOnly, Badge, Button, Failure, IconButton, Page, Skeleton } from '../../ui/parts.tsx';
import { AgentForm } from './agent-form.tsx';
import { ModelTable } from './model-table.tsx';

export type Agent = Result<'agents.get'>;
export type Provider = Extract<Result<'models.list'>, { providers: unknown }>['providers'][number];

interface Overview {
  readonly agents: readonly Agent[];
  readonly providers: readonly Provider[];
}

/** A batch takes fifty calls, one of which lists the models. */
const maxAgents = 49;

async function loadOverview(client: Client, signal: AbortSignal): Promise<Overview> {
  const { agents: ids } = await client.call('agents.list', {}, { signal });
  const [models, ...outcomes] = await client.batch(
    [{ method: 'models.list' }, ...ids.slice(0, maxAgents).map((agentId) => ({ method: 'agents.get', params: { agentId } }) as const)],
    { signal },
  );
  if (!models.ok) throw models.error;
  // One that was deleted between the two requests is simply not there.
  const agents = outcomes.flatMap((outcome) => (outcome.ok ? [outcome.result] : []));
  return { agents, providers: 'providers' in models.result ? models.result.providers : [] };
}

export function AgentsPage() {
  const { admin } = useSession();
  return admin ? <Overview /> : <AdminOnly title="Agents & models" />;
}

function Overview() {
  const { client, chats } = useSession();
  const overview = useLoad('agents', (signal) => loadOverview(client, signal));
  const [editing, setEditing] = useState<Agent | 'new'>();
  const [removing, setRemoving] = useState<Agent>();
  const [error, setError] = useState<unknown>();
  const { data } = overview;

  const change = (run: Promise<unknown>): void => {
    setError(undefined);
    run.then(overview.reload, setError);
  };
  const models = (data?.providers ?? []).flatMap(({ name, models: listed }) => listed.map(({ modelId }) => `${name}/${modelId}`));

  return (
    <Page
      title="Agents & models"
      lead="Who answers, and with which model."
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
          <h2>Agents</h2>
          <ul className="cards">
            {data.agents.map((agent) => (
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
                    change(agent.suspended ? client.call('agents.resume', { agentId }) : client.call('agents.suspend', { agentId }));
                  }}
                />
              </li>
            ))}
          </ul>
          <h2>Models</h2>
          {data.providers.map((provider) => (
            <ModelTable key={provider.name} provider={provider} />
          ))}
        </>
      )}
      {editing !== undefined && (
        <AgentForm
          agent={editing === 'new' ? undefined : editing}
          models={models}
          onClose={() => setEditing(undefined)}
          onDone={() => {
            setEditing(undefined);
            overview.reload();
          }}
        />
      )}
      {removing !== undefined && (
        <Confirm
          title={`Delete the agent ${removing.agentId}?`}
          action="Delete"
          onClose={() => setRemoving(undefined)}
          run={async () => {
            await client.call('agents.delete', { agentId: removing.agentId });
            overview.reload();
          }}
        >
          <p>It takes no more messages. Its conversations stay.</p>
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
          {config.name} <span className="mono hint">{agentId}</span>
        </h3>
        <Badge tone={suspended ? 'warn' : 'good'}>{suspended ? 'Suspended' : 'Active'}</Badge>
      </header>
      <dl className="facts">
        <dt>Model</dt>
        <dd className="mono">{config.model ?? 'the first one found'}</dd>
        {config.fallbackModels.length > 0 && (
          <>
            <dt>Then</dt>
            <dd className="mono">{config.fallbackModels.join(', ')}</dd>
          </>
        )}
        <dt>Tools</dt>
        <dd>{config.tools.profile}</dd>
        <dt>Steps</dt>
        <dd>at most {config.maxSteps}</dd>
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
