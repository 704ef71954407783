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
  ok: 'Running',
  degraded: 'Degraded',
  starting: 'Starting',
  draining: 'Shutting down',
  standby: 'Standby',
};
/** Returns a sentence for each failed check. */
function troublesIn({ checks }: Health): readonly string[] {
  return Object.entries(checks).flatMap(([name, { status, detail }]) =>
    status === 'ok' ? [] : [modelLabels[detail ?? ''] ?? detail ?? `${name}: ${status}`],
  );
}

/** Sentences for the states that the check `models` reports. */
const modelLabels: Readonly<Record<string, string>> = {
  refused: 'A model provider refused the credentials',
  unreachable: 'A model provider does not respond',
  cooling: 'A model provider asked the gateway to wait',
  'no model provider is connected': 'No model provider is connected',
};

export function StatusButton() {
  const { admin, health: watch } = useSession();
  const { health, lost } = useStore(watch.state);
  const [open, setOpen] = useState(false);
  const troubles = health === undefined || lost ? [] : troublesIn(health);
  const status = health?.status === 'ok' && troubles.length > 0 ? 'degraded' : health?.status;
  const tone = lost ? 'bad' : status === undefined ? 'neutral' : tones[status];
  const text = lost ? 'No connection' : status === undefined ? 'Checking…' : healthLabels[status];
  const reason = troubles.join('; ');
  return (
    <>
      {admin && health?.checks['models']?.status === 'degraded' && (
        <PageLink to={hasNoModel(health) ? '/start' : '/agents'} className="status-reason">
          {modelLabels[health.checks['models'].detail ?? ''] ?? 'See the model providers'}
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
    <Dialog title="Gateway status" onClose={onClose}>
      <div className="dialog-body">
        {health !== undefined && (
          <dl className="facts">
            <dt>Health</dt>
            <dd>
              <Badge tone={tones[health.status]}>{healthLabels[health.status]}</Badge>
            </dd>
            {Object.entries(health.checks).map(([name, check]) => (
              <Fact key={name} name={`Check: ${name}`} value={check.detail === undefined ? check.status : `${check.status}: ${check.detail}`} />
            ))}
            <Fact name="Event stream" value={connection === 'open' ? 'connected' : connection} />
            <Fact name="Uptime" value={duration(health.uptimeMs / 1000)} />
          </dl>
        )}
        {status.error !== undefined && <Failure error={status.error} onRetry={status.reload} />}
        {status.loading && <Skeleton lines={3} />}
        {status.data !== undefined && (
          <dl className="facts">
            <Fact name="Address" value={status.data.address ?? 'none'} />
            <Fact name="Process" value={`${status.data.pid}, Node ${status.data.nodeVersion}`} />
            <Fact name="Memory" value={bytes(status.data.memoryUsage)} />
            <Fact name="Connections" value={`${count(status.data.connections.http)} HTTP, ${plural(status.data.connections.websocket, 'socket')}`} />
            <Fact name="Turns" value={`${count(status.data.turns.running)} running, ${count(status.data.turns.queued)} waiting`} />
            <Fact name="Database" value={`${bytes(status.data.storage.bytes)}, ${status.data.storage.state === 'ok' ? 'writable' : 'read-only'}`} />
            <Fact name="Configuration" value={status.data.configPaths.join(', ')} />
            {status.data.configFault !== undefined && <Fact name="Not in force" value={status.data.configFault} />}
            {status.data.restartNeeded.length > 0 && <Fact name="Restart needed" value={status.data.restartNeeded.join(', ')} />}
            {status.data.nodes?.map((node) => (
              <Fact
                key={`${node.role} ${node.address} ${node.version}`}
                name={node.role === 'active' ? 'Active node' : 'Standby node'}
                value={`${node.address ?? 'no address'}${node.self === true ? ' (this one)' : ''}, v${node.version}, ${node.state}, lease ${node.leaseLeftMs > 0 ? `ends in ${duration(node.leaseLeftMs / 1000)}` : 'has ended'}`}
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
