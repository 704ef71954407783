import { t } from '../../language.ts';
import type { Client } from '@gatehouse/client';
import type { Health, KeptRecordName, Result } from '@gatehouse/contract';
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
  storage: t('Storage and disk'),
  telemetry: t('Events and traces'),
  models: t('Model providers'),
  load: t('Load'),
  program: t('Program'),
  clock: t('Clock'),
  lease: t('Lease'),
  turns: t('Turns'),
};

/** How the gateway is: checks, providers, work, storage, disk, jail, records, budgets and nodes. */
export function HealthPage() {
  return useSession().admin ? <Overview /> : <AdminOnly title={t('Health')} />;
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
      title={t('Health')}
      lead={t('Checks, model providers, work, storage and budgets of the gateway.')}
      actions={
        <Button icon="retry" onClick={refresh} disabled={loaded.loading}>
          {t('Refresh')}
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
    <section className="panel" aria-label={t('Checks')}>
      <div className="panel-head">
        <h2>{t('Checks')}</h2>
        <span className="hint">{t('v{version}, up for {uptime}', { version, uptime: duration(uptimeMs / 1000) })}</span>
      </div>
      <ul className="rows plain" aria-label={t('Checks')}>
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
    <section className="panel" aria-label={t('Model providers')}>
      <div className="panel-head">
        <h2>{t('Model providers')}</h2>
        <span className="grow" />
        <PageLink to="/settings/providers">{t('Settings')}</PageLink>
      </div>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {data?.length === 0 && <Empty title={t('No model provider is connected')} />}
      {data !== undefined && data.length > 0 && (
        <ul className="rows plain" aria-label={t('Model providers')}>
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
    <section className="panel" aria-label={t('Work')}>
      <h2>{t('Work')}</h2>
      <dl className="facts">
        <Fact name={t('Turns')}>{t('{running} running, {queued} queued', { running: count(turns.running), queued: count(turns.queued) })}</Fact>
        {slots !== undefined && (
          <Fact name={t('Sub-agents')}>
            {t('{globalActiveSubAgents} of {maxGlobalSubAgents} slots in use, {queueDepth} queued', {
              globalActiveSubAgents: count(slots.globalActiveSubAgents),
              maxGlobalSubAgents: count(slots.maxGlobalSubAgents),
              queueDepth: count(slots.queueDepth),
            })}
          </Fact>
        )}
        <Fact name={t('Approvals')}>
          <PageLink to="/waiting">{t('{pending} pending', { pending: count(pending) })}</PageLink>
        </Fact>
        <Fact name={t('Inbox')}>
          <PageLink to="/inbox">{t('{unread} unread', { unread: count(unread) })}</PageLink>
        </Fact>
        <Fact name={t('Connections')}>
          {t('{http} HTTP, {sockets}', { http: count(connections.http), sockets: plural(connections.websocket, 'socket') })}
        </Fact>
        <Fact name={t('Memory')}>{bytes(memoryUsage)}</Fact>
      </dl>
    </section>
  );
}

const jailTones: Readonly<Record<NonNullable<Status['jail']>['state'], Tone>> = { ready: 'good', unavailable: 'warn', unused: 'neutral' };

function Storage({ status: { storage, disk, jail, configFault, restartNeeded, address, pid, nodeVersion } }: { readonly status: Status }) {
  return (
    <section className="panel" aria-label={t('Storage and process')}>
      <h2>{t('Storage and process')}</h2>
      <dl className="facts">
        <Fact
          name={t('Database')}
        >{`${bytes(storage.bytes)}${storage.walBytes > 0 ? t(', {walBytes} not merged yet', { walBytes: bytes(storage.walBytes) }) : ''}`}</Fact>
        <Fact name={t('State')}>
          <Badge tone={storage.state === 'ok' ? 'good' : 'bad'}>{storage.state === 'ok' ? t('writable') : t('read-only')}</Badge>
        </Fact>
        {storage.reason !== undefined && <Fact name={t('Reason')}>{storage.reason}</Fact>}
        {storage.telemetryBytes !== undefined && (
          <Fact name={t('Events and traces')}>
            {bytes(storage.telemetryBytes)}
            {storage.telemetryState === 'read_only' && t(', not stored at the moment')}
          </Fact>
        )}
        {disk !== undefined && <Fact name={t('Disk')}>{t('{freeBytes} free', { freeBytes: bytes(disk.freeBytes) })}</Fact>}
        {jail !== undefined && (
          <Fact name={t('Jail of commands')}>
            <Badge tone={jailTones[jail.state]}>{jail.state === 'unused' ? t('not used yet') : jail.state}</Badge> {jail.reason}
          </Fact>
        )}
        <Fact name={t('Path')}>{storage.path}</Fact>
        <Fact name={t('Address')}>{address ?? t('none')}</Fact>
        <Fact name={t('Process')}>{t('{pid}, Node {nodeVersion}', { pid, nodeVersion })}</Fact>
        {configFault !== undefined && <Fact name={t('Configuration not in force')}>{configFault}</Fact>}
        {restartNeeded.length > 0 && <Fact name={t('Restart needed for')}>{restartNeeded.join(', ')}</Fact>}
      </dl>
    </section>
  );
}

const keptNames: Readonly<Record<KeptRecordName, string>> = {
  modelCalls: t('Model calls'),
  turns: t('Turns'),
  audit: t('Audit'),
  archives: t('Archives of deleted conversations'),
  reasoning: t('Reasoning of answers'),
  traces: t('Traces'),
  channelMessages: t('Messages of chats'),
  channelDeliveries: t('Messages to chats'),
  browserRecordings: t('Recordings of browsers'),
  subAgentConversations: t('Conversations of sub-agents'),
};

/** How long records are kept, and when old ones are deleted. */
function Records({ retention: { kept, nextAtMs } }: { readonly retention: NonNullable<Status['retention']> }) {
  return (
    <section className="panel" aria-label={t('Records')}>
      <div className="panel-head">
        <h2>{t('Records')}</h2>
        <span className="hint">
          <When atMs={nextAtMs} before={`${t('Old ones are deleted next')} `} />
        </span>
      </div>
      <dl className="facts">
        {kept.map(({ name, days, oldestAtMs, deleted }) => (
          <Fact key={name} name={keptNames[name]}>
            {t('kept {days}', { days: plural(days, 'day') })}
            {oldestAtMs !== undefined && t(', the oldest of {oldestAt}', { oldestAt: dateTime(oldestAtMs) })}
            {deleted > 0 && t(', {deleted} deleted since the start', { deleted: count(deleted) })}
          </Fact>
        ))}
      </dl>
    </section>
  );
}

function Nodes({ nodes }: { readonly nodes: NonNullable<Status['nodes']> }) {
  return (
    <section className="panel" aria-label={t('Nodes')}>
      <h2>{t('Nodes')}</h2>
      <ul className="rows plain" aria-label={t('Nodes')}>
        {nodes.map(({ role, state, address, version, leaseLeftMs, self }) => (
          <li key={`${role} ${address} ${version}`} className="row">
            <div className="row-main">
              <span className="row-title">{`${address ?? t('no address')}${self === true ? ` ${t('(this one)')}` : ''}`}</span>
              <p className="hint">
                {t('v{version}, lease {leaseLeft}', {
                  version,
                  leaseLeft: leaseLeftMs > 0 ? t('ends in {leaseLeft}', { leaseLeft: duration(leaseLeftMs / 1000) }) : t('has ended'),
                })}
              </p>
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
