import type { Result } from '@gatehouse/contract';
import { useEffect, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, clockTime } from '../../data/format.ts';
import { type Loaded, useLoad } from '../../data/use-load.ts';
import { useLiveReload } from '../../data/use-live-reload.ts';
import { Badge, Button, Failure, Notice, type Tone } from '../../ui/parts.tsx';

export type ProviderState = Result<'providers.list'>['providers'][number];

const tones: Readonly<Record<ProviderState['state'], Tone>> = { ok: 'good', refused: 'bad', cooling: 'warn', unreachable: 'bad' };
const meanings: Readonly<Record<Exclude<ProviderState['state'], 'ok'>, string>> = {
  refused: 'It refused the credentials of this gateway.',
  cooling: 'It asked to wait.',
  unreachable: 'It does not answer as it should.',
};
/** A pause that is over has no event. */
const refreshMs = 15_000;

/** Loads the state of each provider, again whenever a call changes it. */
export function useProviderStates(): Loaded<readonly ProviderState[]> {
  const { client } = useSession();
  const loaded = useLoad('provider states', async (signal) => (await client.call('providers.list', {}, { signal })).providers);
  const { data, reload } = loaded;
  useLiveReload('provider:', reload);
  useLiveReload('model:auth_cooldown', reload);
  const isUnwell = data?.some(({ state }) => state !== 'ok') === true;
  useEffect(() => {
    if (!isUnwell) return undefined;
    const timer = setInterval(reload, refreshMs);
    return () => clearInterval(timer);
  }, [isUnwell, reload]);
  return loaded;
}

export function ProviderBadge({ state: { state, untilMs } }: { readonly state: ProviderState }) {
  const until = untilMs === undefined ? '' : state === 'cooling' ? ` until ${clockTime(untilMs)}` : `, next call ${clockTime(untilMs)}`;
  return <Badge tone={tones[state]}>{state === 'ok' ? 'ok' : `${state}${until}`}</Badge>;
}

/** Says why a provider is not called, and has it called again at once. */
export function ProviderTrouble({ state, onChanged }: { readonly state: ProviderState; readonly onChanged: () => void }) {
  const { client, health } = useSession();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [isRetried, setRetried] = useState(false);
  const { provider } = state;
  const retry = (): void => {
    setBusy(true);
    setError(undefined);
    client
      .call('providers.retry', { provider })
      .then(() => {
        setRetried(true);
        onChanged();
        health.ask();
      }, setError)
      .finally(() => setBusy(false));
  };
  return (
    <>
      {error !== undefined && <Failure error={error} />}
      {state.state === 'ok' && isRetried && (
        <Notice tone="good">
          <span>The next call goes through, and work that waits for {provider} is tried now.</span>
        </Notice>
      )}
      {state.state !== 'ok' && (
        <div className={`notice ${tones[state.state]}`} role="status">
          <div>
            <p>
              {meanings[state.state]} <span className="hint">First seen {ago(state.sinceMs)}.</span>
            </p>
            {state.cause !== undefined && <p dir="auto">{state.cause}</p>}
          </div>
          <Button small icon="retry" disabled={busy} onClick={retry} label={`Try now: ${provider}`}>
            Try now
          </Button>
        </div>
      )}
    </>
  );
}
