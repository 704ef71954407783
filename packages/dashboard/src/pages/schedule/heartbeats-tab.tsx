import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, dateTime, duration, plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { PageLink } from '../../ui/link.tsx';
import { Badge, Button, Empty, Failure, Notice, Skeleton, type Tone } from '../../ui/parts.tsx';

type State = Result<'heartbeat.states'>['agents'][number];

/** Lists the heartbeats of agents and their state. */
export function HeartbeatsTab() {
  const { client } = useSession();
  const found = useLoad(['heartbeat.states'], (signal) => client.call('heartbeat.states', {}, { signal }), {
    changedBy: ['scheduler:heartbeat_'],
  });
  const { busy, error, run } = useAction();
  const [outcome, setOutcome] = useState<string>();
  const begin = (work: () => Promise<string>): void => {
    setOutcome(undefined);
    run(async () => {
      setOutcome(await work());
      found.reload();
    });
  };
  const change = async (agentId: string, enabled: boolean): Promise<string> => {
    await client.call('heartbeat.update', { agentId, enabled });
    return t('Heartbeat of {agentId} {enabled}.', { agentId, enabled: enabled ? t('enabled') : t('disabled') });
  };
  const trigger = async (agentId: string): Promise<string> => {
    const { admission } = await client.call('heartbeat.trigger', { agentId });
    return admission.status === 'accepted'
      ? t('Triggered the heartbeat of {agentId}.', { agentId })
      : t('A heartbeat of {agentId} is already pending.', { agentId });
  };
  return (
    <>
      <p className="hint">
        {tx(
          'At each heartbeat an agent reviews its checklist (HEARTBEAT.md) and recent events. With nothing to review, no model is called. Its reports are in the {link}.',
          { link: <PageLink to="/inbox">{t('inbox')}</PageLink> },
        )}
      </p>
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {error !== undefined && <Failure error={error} />}
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {found.data === undefined && found.loading && <Skeleton lines={4} />}
      {found.data?.agents.length === 0 && <Empty title={t('No agents')} />}
      <ul className="rows" aria-label={t('Heartbeats')}>
        {found.data?.agents.map((state) => {
          const { agentId, enabled } = state;
          const { text, tone } = stateLabel(state);
          return (
            <li key={agentId} className="row">
              <div className="row-main">
                <PageLink to={`/agents/${encodeURIComponent(agentId)}`} className="row-title mono">
                  {agentId}
                </PageLink>
                <p className="hint">
                  {t('every {interval}', { interval: duration(state.intervalMs / 1000) })}
                  {state.lastRunAtMs !== null && ` ${t('· last run {lastRunAt}', { lastRunAt: ago(state.lastRunAtMs) })}`}
                  {state.consecutiveErrors > 0 && ` · ${plural(state.consecutiveErrors, 'consecutive error')}`}
                </p>
              </div>
              <div className="row-facts">
                {state.queuedEvents > 0 && <span>{`${plural(state.queuedEvents, 'queued event')}`}</span>}
                {state.nextDueAtMs !== null && (
                  <span title={dateTime(state.nextDueAtMs)}>{t('next {nextDueAt}', { nextDueAt: ago(state.nextDueAtMs) })}</span>
                )}
                <Badge tone={tone}>{text}</Badge>
              </div>
              <div className="actions">
                {enabled && (
                  <Button small disabled={busy} label={t('Trigger now: {agentId}', { agentId })} onClick={() => begin(() => trigger(agentId))}>
                    {t('Trigger now')}
                  </Button>
                )}
                <Button
                  small
                  disabled={busy}
                  label={t('{enabled} heartbeat of {agentId}', { enabled: enabled ? t('Disable') : t('Enable'), agentId })}
                  onClick={() => begin(() => change(agentId, !enabled))}
                >
                  {enabled ? t('Disable') : t('Enable')}
                </Button>
              </div>
            </li>
          );
        })}
      </ul>
    </>
  );
}

function stateLabel({ enabled, stoppedBy, tickStartedAtMs, backoffUntilMs, lastErrorKind }: State): { readonly text: string; readonly tone: Tone } {
  if (!enabled) return { text: t('Off'), tone: 'neutral' };
  if (stoppedBy !== null)
    return {
      text: stoppedBy === 'auth' ? t('Stopped: the provider refused the API key') : t('Stopped: the provider refused the account'),
      tone: 'bad',
    };
  if (tickStartedAtMs !== null) return { text: t('Running'), tone: 'accent' };
  if (backoffUntilMs !== null)
    return { text: t('Paused after an error until {backoffUntil}', { backoffUntil: dateTime(backoffUntilMs) }), tone: 'warn' };
  return lastErrorKind === null ? { text: t('On'), tone: 'good' } : { text: t('On, after an error'), tone: 'warn' };
}
