import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useEffect, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, clockTime } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { type Loaded, useLoad } from '../../data/use-load.ts';
import { Badge, Button, Failure, Notice, type Tone } from '../../ui/parts.tsx';

export type ProviderState = Result<'providers.list'>['providers'][number];

export const stateTones: Readonly<Record<ProviderState['state'], Tone>> = { ok: 'good', refused: 'bad', cooling: 'warn', unreachable: 'bad' };
const meanings: Readonly<Record<Exclude<ProviderState['state'], 'ok'>, string>> = {
  refused: t('The provider refused the credentials of this gateway.'),
  cooling: t('The provider asked the gateway to wait.'),
  unreachable: t('The provider does not respond properly.'),
};
/** Polling interval: no event reports the end of a pause. */
const refreshMs = 15_000;

/** Loads the state of each provider, and reloads it whenever a call changes it. */
export function useProviderStates(): Loaded<readonly ProviderState[]> {
  const { client } = useSession();
  const loaded = useLoad(['providers.list'], async (signal) => (await client.call('providers.list', {}, { signal })).providers, {
    changedBy: ['provider:', 'model:auth_cooldown'],
  });
  const { data, reload } = loaded;
  const isUnwell = data?.some(({ state }) => state !== 'ok') === true;
  useEffect(() => {
    if (!isUnwell) return undefined;
    const timer = setInterval(reload, refreshMs);
    return () => clearInterval(timer);
  }, [isUnwell, reload]);
  return loaded;
}

export function ProviderBadge({ state: { state, untilMs } }: { readonly state: ProviderState }) {
  const until =
    untilMs === undefined
      ? ''
      : state === 'cooling'
        ? ` ${t('until {until}', { until: clockTime(untilMs) })}`
        : t(', next call {until}', { until: clockTime(untilMs) });
  return <Badge tone={stateTones[state]}>{state === 'ok' ? t('ok') : `${state}${until}`}</Badge>;
}

/** Explains why a provider is paused, with a button to retry now. */
export function ProviderTrouble({ state, onChanged }: { readonly state: ProviderState; readonly onChanged: () => void }) {
  const { client, health } = useSession();
  const { busy, error, run } = useAction();
  const [isRetried, setRetried] = useState(false);
  const { provider } = state;
  const retry = async (): Promise<void> => {
    await client.call('providers.retry', { provider });
    setRetried(true);
    onChanged();
    health.ask();
  };
  return (
    <>
      {error !== undefined && <Failure error={error} />}
      {state.state === 'ok' && isRetried && (
        <Notice tone="good">
          <span>{tx('The next call goes through, and work waiting for {provider} is retried now.', { provider })}</span>
        </Notice>
      )}
      {state.state !== 'ok' && (
        <div className={`notice ${stateTones[state.state]}`} role="status">
          <div>
            <p>
              {meanings[state.state]} <span className="hint">{tx('First seen {since}.', { since: ago(state.sinceMs) })}</span>
            </p>
            {state.cause !== undefined && <p dir="auto">{state.cause}</p>}
          </div>
          <Button small icon="retry" disabled={busy} onClick={() => run(retry)} label={t('Retry now: {provider}', { provider })}>
            {t('Retry now')}
          </Button>
        </div>
      )}
    </>
  );
}
