import { t } from './language.ts';
import type { Health } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from './data/context.ts';
import { hasNoModel } from './data/first-run.ts';
import { bytes, count, duration, plural } from './data/format.ts';
import { useStore } from './data/store.ts';
import { RestartNow } from './restart-now.tsx';
import { useLoad } from './data/use-load.ts';
import { Dialog } from './ui/dialog.tsx';
import { PageLink } from './ui/link.tsx';
import { Badge, Failure, Skeleton, type Tone } from './ui/parts.tsx';

const tones: Record<Health['status'], Tone> = { ok: 'good', degraded: 'warn', starting: 'warn', draining: 'warn', standby: 'neutral' };
const healthLabels: Record<Health['status'], string> = {
  ok: t('Running'),
  degraded: t('Degraded'),
  starting: t('Starting'),
  draining: t('Shutting down'),
  standby: t('Standby'),
};
/** Returns a sentence for each failed check. */
function troublesIn({ checks }: Health): readonly string[] {
  return Object.entries(checks).flatMap(([name, { status, detail }]) =>
    status === 'ok' ? [] : [modelLabels[detail ?? ''] ?? detail ?? `${name}: ${status}`],
  );
}

/** Sentences for the states that the check `models` reports. */
const modelLabels: Readonly<Record<string, string>> = {
  refused: t('A model provider refused the credentials'),
  unreachable: t('A model provider does not respond'),
  cooling: t('A model provider asked the gateway to wait'),
  'no model provider is connected': t('No model provider is connected'),
};

export function StatusButton() {
  const { admin, health: watch } = useSession();
  const { health, lost } = useStore(watch.state);
  const [open, setOpen] = useState(false);
  const troubles = health === undefined || lost ? [] : troublesIn(health);
  const status = health?.status === 'ok' && troubles.length > 0 ? 'degraded' : health?.status;
  const tone = lost ? 'bad' : status === undefined ? 'neutral' : tones[status];
  const text = lost ? t('No connection') : status === undefined ? t('Checking…') : healthLabels[status];
  const reason = troubles.join('; ');
  return (
    <>
      {admin && health?.checks['models']?.status === 'degraded' && (
        <PageLink to={hasNoModel(health) ? '/start' : '/agents'} className="status-reason">
          {modelLabels[health.checks['models'].detail ?? ''] ?? t('See the model providers')}
        </PageLink>
      )}
      <button type="button" className="status-button" title={reason === '' ? undefined : reason} onClick={() => setOpen(true)} aria-haspopup="dialog">
        <span className={`dot ${tone}`} aria-hidden="true" />
        <span>{text}</span>
        {health !== undefined && <span className="hint">v{health.version}</span>}
      </button>
      {open && <StatusDialog health={health} onClose={() => setOpen(false)} />}
    </>
  );
}

function StatusDialog({ health, onClose }: { readonly health: Health | undefined; readonly onClose: () => void }) {
  const { client, admin, live } = useSession();
  const { connection } = useStore(live.state);
  const status = useLoad(['gateway.status'], (signal) => (admin ? client.call('gateway.status', {}, { signal }) : Promise.resolve(undefined)));
  return (
    <Dialog title={t('Gateway status')} onClose={onClose}>
      <div className="dialog-body">
        {health !== undefined && (
          <dl className="facts">
            <dt>{t('Health')}</dt>
            <dd>
              <Badge tone={tones[health.status]}>{healthLabels[health.status]}</Badge>
            </dd>
            {Object.entries(health.checks).map(([name, check]) => (
              <Fact
                key={name}
                name={t('Check: {name}', { name })}
                value={check.detail === undefined ? check.status : `${check.status}: ${check.detail}`}
              />
            ))}
            <Fact name={t('Event stream')} value={connection === 'open' ? t('connected') : connection} />
            <Fact name={t('Uptime')} value={duration(health.uptimeMs / 1000)} />
          </dl>
        )}
        {status.error !== undefined && <Failure error={status.error} onRetry={status.reload} />}
        {status.loading && <Skeleton lines={3} />}
        {status.data !== undefined && (
          <dl className="facts">
            <Fact name={t('Address')} value={status.data.address ?? t('none')} />
            <Fact name={t('Process')} value={t('{pid}, Node {nodeVersion}', { pid: status.data.pid, nodeVersion: status.data.nodeVersion })} />
            <Fact name={t('Memory')} value={bytes(status.data.memoryUsage)} />
            <Fact
              name={t('Connections')}
              value={t('{http} HTTP, {sockets}', {
                http: count(status.data.connections.http),
                sockets: plural(status.data.connections.websocket, 'socket'),
              })}
            />
            <Fact
              name={t('Turns')}
              value={t('{running} running, {queued} waiting', { running: count(status.data.turns.running), queued: count(status.data.turns.queued) })}
            />
            <Fact
              name={t('Database')}
              value={`${bytes(status.data.storage.bytes)}, ${status.data.storage.state === 'ok' ? 'writable' : 'read-only'}`}
            />
            <Fact name={t('Configuration')} value={status.data.configPaths.join(', ')} />
            {status.data.configFault !== undefined && <Fact name={t('Not in force')} value={status.data.configFault} />}
            {status.data.restartNeeded.length > 0 && <Fact name={t('Restart needed')} value={status.data.restartNeeded.join(', ')} />}
            {status.data.nodes?.map((node) => (
              <Fact
                key={`${node.role} ${node.address} ${node.version}`}
                name={node.role === 'active' ? t('Active node') : t('Standby node')}
                value={t('{address}{self}, v{version}, {state}, lease {leaseLeft}', {
                  address: node.address ?? t('no address'),
                  self: node.self === true ? ` ${t('(this one)')}` : '',
                  version: node.version,
                  state: node.state,
                  leaseLeft: node.leaseLeftMs > 0 ? t('ends in {leaseLeft}', { leaseLeft: duration(node.leaseLeftMs / 1000) }) : t('has ended'),
                })}
              />
            ))}
          </dl>
        )}
        {status.data !== undefined && status.data.restartNeeded.length > 0 && <RestartNow />}
      </div>
    </Dialog>
  );
}

function Fact({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}
