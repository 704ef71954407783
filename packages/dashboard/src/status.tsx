import type { Health } from '@gatehouse/contract';
import { useEffect, useState } from 'react';
import { useSession } from './data/context.ts';
import { bytes, count, duration, plural } from './data/format.ts';
import { useStore } from './data/store.ts';
import { useLoad } from './data/use-load.ts';
import { Dialog } from './ui/dialog.tsx';
import { Badge, Failure, Skeleton, type Tone } from './ui/parts.tsx';

const tones: Record<Health['status'], Tone> = { ok: 'good', degraded: 'warn', starting: 'warn', draining: 'warn' };
const words: Record<Health['status'], string> = { ok: 'Running', degraded: 'Degraded', starting: 'Starting', draining: 'Shutting down' };
const refreshMs = 60_000;
/** While nobody answers: who waits for a restart watches. */
const lostRefreshMs = 3_000;

/** How the gateway is: asked when the event stream opens or breaks, when a fault is told, and each minute that somebody looks; more often while nobody answers. */
function useHealth(): { readonly health: Health | undefined; readonly lost: boolean } {
  const { client, live } = useSession();
  const { connection } = useStore(live.state);
  const [health, setHealth] = useState<Health>();
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let gone = false;
    const ask = (): void => {
      if (document.visibilityState === 'hidden') return;
      client.health({ timeoutMs: 10_000 }).then(
        (answer) => {
          if (gone) return;
          setHealth(answer);
          setFailed(false);
        },
        () => {
          if (!gone) setFailed(true);
        },
      );
    };
    ask();
    const timer = setInterval(ask, failed ? lostRefreshMs : refreshMs);
    const stop = live.listen(({ kind }) => {
      if (/^(provider|system|gap)/.test(kind)) ask();
    });
    document.addEventListener('visibilitychange', ask);
    return () => {
      gone = true;
      clearInterval(timer);
      stop();
      document.removeEventListener('visibilitychange', ask);
    };
  }, [client, live, connection, failed]);
  return { health, lost: failed };
}

export function StatusButton() {
  const { health, lost } = useHealth();
  const [open, setOpen] = useState(false);
  const tone = lost ? 'bad' : health === undefined ? 'neutral' : tones[health.status];
  const text = lost ? 'No connection' : health === undefined ? 'Asking…' : words[health.status];
  return (
    <>
      <button type="button" className="status-button" onClick={() => setOpen(true)} aria-haspopup="dialog">
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
  const status = useLoad('status', (signal) => (admin ? client.call('gateway.status', {}, { signal }) : Promise.resolve(undefined)));
  return (
    <Dialog title="State of the gateway" onClose={onClose}>
      <div className="dialog-body">
        {health !== undefined && (
          <dl className="facts">
            <dt>Health</dt>
            <dd>
              <Badge tone={tones[health.status]}>{words[health.status]}</Badge>
            </dd>
            {Object.entries(health.checks).map(([name, check]) => (
              <Fact key={name} name={`Check: ${name}`} value={check.detail === undefined ? check.status : `${check.status}: ${check.detail}`} />
            ))}
            <Fact name="Event stream" value={connection === 'open' ? 'connected' : connection} />
            <Fact name="Up for" value={duration(health.uptimeMs / 1000)} />
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
          </dl>
        )}
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
