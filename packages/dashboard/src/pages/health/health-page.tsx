import type { Client } from '@gatehouse/client';
import type { Health, Result } from '@gatehouse/contract';
import type { ReactNode } from 'react';
import { useSession } from '../../data/context.ts';
import { bytes, count, dateTime, duration, plural } from '../../data/format.ts';
import { useStore } from '../../data/store.ts';
import { useLoad } from '../../data/use-load.ts';
import { PageLink } from '../../ui/link.tsx';
import { AdminOnly, Badge, Button, Empty, Failure, Page, Skeleton, type Tone } from '../../ui/parts.tsx';
import { When } from '../../ui/when.tsx';
import { ProviderBadge, ProviderTrouble, useProviderStates } from '../agents/provider-state.tsx';
import { Findings } from './findings.tsx';
import { BudgetMeters } from '../spend/budget-meters.tsx';

type Status = Result<'gateway.status'>;

const checkTones: Readonly<Record<Health['checks'][string]['status'], Tone>> = { ok: 'good', degraded: 'warn', failed: 'bad' };
const checkNames: Readonly<Record<string, string>> = {
  storage: 'Storage and disk',
  telemetry: 'Events and traces',
  models: 'Model providers',
  load: 'Load',
  program: 'Program',
  clock: 'Clock',
  lease: 'Lease',
  turns: 'Turns',
};

/** How the gateway is: checks, providers, work, storage, disk, jail, records, budgets and nodes. */
export function HealthPage() {
  return useSession().admin ? <Overview /> : <AdminOnly title="Health" />;
}

type Slots = Extract<Result<'graph.status'>, { concurrency: unknown }>['concurrency'];

interface Overview {
  readonly status: Status;
  readonly slots: Slots | undefined;
}

async function load(client: Client, signal: AbortSignal): Promise<Overview> {
  const [status, graphs] = await client.batch([{ method: 'gateway.status' }, { method: 'graph.status', params: { recentMinutes: 1 } }], { signal });
  if (!status.ok) throw status.error;
  return { status: status.result, slots: graphs.ok && 'concurrency' in graphs.result ? graphs.result.concurrency : undefined };
}

function Overview() {
  const { client, health: watch } = useSession();
  const { health, lost } = useStore(watch.state);
  const loaded = useLoad(['gateway.status', 'health'], (signal) => load(client, signal), {
    changedBy: ['provider', 'config:', 'system', 'message:sent'],
    settleMs: 2_000,
  });
  const refresh = (): void => {
    watch.ask();
    loaded.reload();
  };
  return (
    <Page
      title="Health"
      lead="Checks, model providers, work, storage and budgets of the gateway."
      actions={
        <Button icon="retry" onClick={refresh} disabled={loaded.loading}>
          Refresh
        </Button>
      }
    >
      {lost && <Failure error={new Error('The gateway does not respond.')} onRetry={refresh} />}
      {health !== undefined && <Checks health={health} />}
      <Findings />
      <Providers />
      {loaded.error !== undefined && <Failure error={loaded.error} onRetry={loaded.reload} />}
      {loaded.data === undefined && loaded.loading && <Skeleton lines={6} />}
      {loaded.data !== undefined && (
        <div className="pair">
          <Work {...loaded.data} />
          <Storage status={loaded.data.status} />
        </div>
      )}
      {loaded.data?.status.retention !== undefined && <Records retention={loaded.data.status.retention} />}
      {loaded.data?.status.nodes !== undefined && <Nodes nodes={loaded.data.status.nodes} />}
      <BudgetMeters agentId={undefined} />
    </Page>
  );
}

function Checks({ health: { checks, uptimeMs, version } }: { readonly health: Health }) {
  return (
    <section className="panel" aria-label="Checks">
      <div className="panel-head">
        <h2>Checks</h2>
        <span className="hint">{`v${version}, up for ${duration(uptimeMs / 1000)}`}</span>
      </div>
      <ul className="rows plain" aria-label="Checks">
        {Object.entries(checks).map(([name, { status, detail }]) => (
          <li key={name} className="row">
            <div className="row-main">
              <span className="row-title">{checkNames[name] ?? name}</span>
              {detail !== undefined && <p className="snippet">{detail}</p>}
            </div>
            <div className="row-facts">
              <Badge tone={checkTones[status]}>{status}</Badge>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Providers() {
  const { data, error, reload } = useProviderStates();
  return (
    <section className="panel" aria-label="Model providers">
      <div className="panel-head">
        <h2>Model providers</h2>
        <span className="grow" />
        <PageLink to="/settings/providers">Settings</PageLink>
      </div>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {data?.length === 0 && <Empty title="No model provider is connected" />}
      {data !== undefined && data.length > 0 && (
        <ul className="rows plain" aria-label="Model providers">
          {data.map((state) => (
            <li key={state.provider} className="row">
              <div className="row-main">
                <span className="row-title">{state.provider}</span>
              </div>
              <div className="row-facts">
                <ProviderBadge state={state} />
              </div>
              <div className="health-trouble">
                <ProviderTrouble state={state} onChanged={reload} />
              </div>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Work({ status, slots }: Overview) {
  const { approvals, inbox } = useSession();
  const pending = useStore(approvals.state).total;
  const unread = useStore(inbox.state).unread;
  const { turns, connections, memoryUsage } = status;
  return (
    <section className="panel" aria-label="Work">
      <h2>Work</h2>
      <dl className="facts">
        <Fact name="Turns">{`${count(turns.running)} running, ${count(turns.queued)} queued`}</Fact>
        {slots !== undefined && (
          <Fact name="Sub-agents">{`${count(slots.globalActiveSubAgents)} of ${count(slots.maxGlobalSubAgents)} slots in use, ${count(slots.queueDepth)} queued`}</Fact>
        )}
        <Fact name="Approvals">
          <PageLink to="/waiting">{`${count(pending)} pending`}</PageLink>
        </Fact>
        <Fact name="Inbox">
          <PageLink to="/inbox">{`${count(unread)} unread`}</PageLink>
        </Fact>
        <Fact name="Connections">{`${count(connections.http)} HTTP, ${plural(connections.websocket, 'socket')}`}</Fact>
        <Fact name="Memory">{bytes(memoryUsage)}</Fact>
      </dl>
    </section>
  );
}

const jailTones: Readonly<Record<NonNullable<Status['jail']>['state'], Tone>> = { ready: 'good', unavailable: 'warn', unused: 'neutral' };

function Storage({ status: { storage, disk, jail, configFault, restartNeeded, address, pid, nodeVersion } }: { readonly status: Status }) {
  return (
    <section className="panel" aria-label="Storage and process">
      <h2>Storage and process</h2>
      <dl className="facts">
        <Fact name="Database">{`${bytes(storage.bytes)}${storage.walBytes > 0 ? `, ${bytes(storage.walBytes)} not merged yet` : ''}`}</Fact>
        <Fact name="State">
          <Badge tone={storage.state === 'ok' ? 'good' : 'bad'}>{storage.state === 'ok' ? 'writable' : 'read-only'}</Badge>
        </Fact>
        {storage.reason !== undefined && <Fact name="Reason">{storage.reason}</Fact>}
        {storage.telemetryBytes !== undefined && (
          <Fact name="Events and traces">
            {bytes(storage.telemetryBytes)}
            {storage.telemetryState === 'read_only' && ', not stored at the moment'}
          </Fact>
        )}
        {disk !== undefined && <Fact name="Disk">{`${bytes(disk.freeBytes)} free`}</Fact>}
        {jail !== undefined && (
          <Fact name="Jail of commands">
            <Badge tone={jailTones[jail.state]}>{jail.state === 'unused' ? 'not used yet' : jail.state}</Badge> {jail.reason}
          </Fact>
        )}
        <Fact name="Path">{storage.path}</Fact>
        <Fact name="Address">{address ?? 'none'}</Fact>
        <Fact name="Process">{`${pid}, Node ${nodeVersion}`}</Fact>
        {configFault !== undefined && <Fact name="Configuration not in force">{configFault}</Fact>}
        {restartNeeded.length > 0 && <Fact name="Restart needed for">{restartNeeded.join(', ')}</Fact>}
      </dl>
    </section>
  );
}

const keptNames: Readonly<Record<string, string>> = {
  modelCalls: 'Model calls',
  turns: 'Turns',
  audit: 'Audit',
  archives: 'Archives of deleted conversations',
  traces: 'Traces',
  channelMessages: 'Messages of chats',
  channelDeliveries: 'Messages to chats',
  subAgentConversations: 'Conversations of sub-agents',
};

/** How long records are kept, and when old ones are deleted. */
function Records({ retention: { kept, nextAtMs } }: { readonly retention: NonNullable<Status['retention']> }) {
  return (
    <section className="panel" aria-label="Records">
      <div className="panel-head">
        <h2>Records</h2>
        <span className="hint">
          <When atMs={nextAtMs} before="Old ones are deleted next " />
        </span>
      </div>
      <dl className="facts">
        {kept.map(({ name, days, oldestAtMs, deleted }) => (
          <Fact key={name} name={keptNames[name] ?? name}>
            {`kept ${plural(days, 'day')}`}
            {oldestAtMs !== undefined && `, the oldest of ${dateTime(oldestAtMs)}`}
            {deleted > 0 && `, ${count(deleted)} deleted since the start`}
          </Fact>
        ))}
      </dl>
    </section>
  );
}

function Nodes({ nodes }: { readonly nodes: NonNullable<Status['nodes']> }) {
  return (
    <section className="panel" aria-label="Nodes">
      <h2>Nodes</h2>
      <ul className="rows plain" aria-label="Nodes">
        {nodes.map(({ role, state, address, version, leaseLeftMs, self }) => (
          <li key={`${role} ${address} ${version}`} className="row">
            <div className="row-main">
              <span className="row-title">{`${address ?? 'no address'}${self === true ? ' (this one)' : ''}`}</span>
              <p className="hint">{`v${version}, lease ${leaseLeftMs > 0 ? `ends in ${duration(leaseLeftMs / 1000)}` : 'has ended'}`}</p>
            </div>
            <div className="row-facts">
              <Badge tone={role === 'active' ? 'accent' : 'neutral'}>{role}</Badge>
              <Badge tone={state === 'live' ? 'good' : 'warn'}>{state}</Badge>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
