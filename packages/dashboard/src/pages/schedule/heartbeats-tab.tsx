import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, dateTime, duration, plural } from '../../data/format.ts';
import { useLiveReload } from '../../data/use-live-reload.ts';
import { useLoad } from '../../data/use-load.ts';
import { PageLink } from '../../ui/link.tsx';
import { Badge, Button, Empty, Failure, Notice, Skeleton, type Tone } from '../../ui/parts.tsx';

type State = Result<'heartbeat.states'>['agents'][number];

/** Which agents look after things by themselves, and how that goes. */
export function HeartbeatsTab() {
  const { client } = useSession();
  const found = useLoad('heartbeats', (signal) => client.call('heartbeat.states', {}, { signal }));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [outcome, setOutcome] = useState<string>();
  useLiveReload('scheduler:heartbeat_', found.reload);
  const run = (work: () => Promise<string>): void => {
    setBusy(true);
    setError(undefined);
    setOutcome(undefined);
    work()
      .then((words) => {
        setOutcome(words);
        found.reload();
      }, setError)
      .finally(() => setBusy(false));
  };
  const change = async (agentId: string, enabled: boolean): Promise<string> => {
    await client.call('heartbeat.update', { agentId, enabled });
    return `The heartbeat of ${agentId} is ${enabled ? 'on' : 'off'}.`;
  };
  const trigger = async (agentId: string): Promise<string> => {
    const { admission } = await client.call('heartbeat.trigger', { agentId });
    return admission.status === 'accepted' ? `A beat of ${agentId} was asked for.` : `A beat of ${agentId} waits already.`;
  };
  return (
    <>
      <p className="hint">
        In a beat an agent goes through its checklist (HEARTBEAT.md) and what has happened. With nothing there no model is called; what it has to say
        is in the <PageLink to="/inbox">inbox</PageLink>.
      </p>
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {error !== undefined && <Failure error={error} />}
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {found.data === undefined && found.loading && <Skeleton lines={4} />}
      {found.data?.agents.length === 0 && <Empty title="There are no agents" />}
      <ul className="rows" aria-label="Heartbeats">
        {found.data?.agents.map((state) => {
          const { agentId, enabled } = state;
          const { words, tone } = wordsOf(state);
          return (
            <li key={agentId} className="row">
              <div className="row-main">
                <PageLink to={`/agents/${encodeURIComponent(agentId)}`} className="row-title mono">
                  {agentId}
                </PageLink>
                <p className="hint">
                  {`every ${duration(state.intervalMs / 1000)}`}
                  {state.lastRunAtMs !== null && ` · last beat ${ago(state.lastRunAtMs)}`}
                  {state.consecutiveErrors > 0 && ` · ${plural(state.consecutiveErrors, 'error')} in a row`}
                </p>
              </div>
              <div className="row-facts">
                {state.queuedEvents > 0 && <span>{`${plural(state.queuedEvents, 'event')} waiting`}</span>}
                {state.nextDueAtMs !== null && <span title={dateTime(state.nextDueAtMs)}>{`next ${ago(state.nextDueAtMs)}`}</span>}
                <Badge tone={tone}>{words}</Badge>
              </div>
              <div className="actions">
                {enabled && (
                  <Button small disabled={busy} label={`Beat now: ${agentId}`} onClick={() => run(() => trigger(agentId))}>
                    Beat now
                  </Button>
                )}
                <Button
                  small
                  disabled={busy}
                  label={`Switch ${enabled ? 'off' : 'on'} the heartbeat of ${agentId}`}
                  onClick={() => run(() => change(agentId, !enabled))}
                >
                  {enabled ? 'Switch off' : 'Switch on'}
                </Button>
              </div>
            </li>
          );
        })}
      </ul>
    </>
  );
}

function wordsOf({ enabled, stoppedBy, tickStartedAtMs, backoffUntilMs, lastErrorKind }: State): { readonly words: string; readonly tone: Tone } {
  if (!enabled) return { words: 'Off', tone: 'neutral' };
  if (stoppedBy !== null)
    return { words: stoppedBy === 'auth' ? 'Stopped: the model refused the key' : 'Stopped: the model refused the account', tone: 'bad' };
  if (tickStartedAtMs !== null) return { words: 'Beats now', tone: 'accent' };
  if (backoffUntilMs !== null) return { words: `Waits after an error, until ${dateTime(backoffUntilMs)}`, tone: 'warn' };
  return lastErrorKind === null ? { words: 'On', tone: 'good' } : { words: 'On, after an error', tone: 'warn' };
}
