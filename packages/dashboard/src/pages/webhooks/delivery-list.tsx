import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { type ReactNode, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, bytes, dateTime, plural } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { PageLink } from '../../ui/link.tsx';
import { ObjectLink, TraceLink } from '../../ui/object-link.tsx';
import { Badge, Button, Empty, Failure, Notice, Skeleton, type Tone } from '../../ui/parts.tsx';
import { EffectsRefused, Waiting, WaitingReason } from '../../ui/waiting.tsx';

type Delivery = Result<'webhooks.deliveries'>['deliveries'][number];

const tones: Readonly<Record<Delivery['state'], Tone>> = {
  accepted: 'accent',
  running: 'accent',
  done: 'good',
  failed: 'bad',
  aborted: 'warn',
  unknown: 'warn',
  ignored: 'neutral',
};
const states = ['accepted', 'running', 'done', 'failed', 'aborted', 'unknown', 'ignored'] as const;
const pageSize = 50;

/** Lists deliveries of the last seven days with their conversations and turns. */
export function DeliveryList({
  mappings,
  mapping: firstMapping = '',
  named,
  onReplayed,
}: {
  readonly mappings: readonly string[];
  /** The mapping whose deliveries are listed at first; those of all when omitted. */
  readonly mapping: string | undefined;
  /** Id of a delivery that is shown open. */
  readonly named: string | undefined;
  readonly onReplayed: () => void;
}) {
  const { client } = useSession();
  const [mapping, setMapping] = useState(firstMapping);
  const [state, setState] = useState<'' | Delivery['state']>('');
  /** Cursors of the previous pages. */
  const [trail, setTrail] = useState<readonly string[]>([]);
  const [asked, setAsked] = useState<Delivery>();
  const [outcome, setOutcome] = useState<string>();
  const before = trail.at(-1);
  const found = useLoad(
    ['webhooks.deliveries', mapping, state, before],
    (signal) =>
      client.call('webhooks.deliveries', { limit: pageSize, before, ...(mapping !== '' && { mapping }), ...(state !== '' && { state }) }, { signal }),
    { changedBy: ['webhook:'] },
  );
  const { data } = found;
  return (
    <section className="deliveries" aria-label={t('Deliveries')}>
      <div className="toolbar">
        <h2>{t('Deliveries')}</h2>
        <span className="grow" />
        <select
          aria-label={t('Mapping')}
          value={mapping}
          onChange={(event) => {
            setMapping(event.target.value);
            setTrail([]);
          }}
        >
          <option value="">{t('All mappings')}</option>
          {mappings.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <select
          aria-label={t('State')}
          value={state}
          onChange={(event) => {
            setState(states.find((one) => one === event.target.value) ?? '');
            setTrail([]);
          }}
        >
          <option value="">{t('All states')}</option>
          {states.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <Button icon="retry" onClick={found.reload} disabled={found.loading}>
          {t('Refresh')}
        </Button>
      </div>
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {data === undefined && found.loading && <Skeleton lines={5} />}
      {data?.deliveries.length === 0 && <Empty title={t('No deliveries')} />}
      {data !== undefined && data.deliveries.length > 0 && (
        <ul className="feed" aria-label={t('Deliveries')}>
          {data.deliveries.map((delivery) => (
            <li key={delivery.deliveryId}>
              <DeliveryRow delivery={delivery} isOpen={delivery.deliveryId === named} onReplay={() => setAsked(delivery)} />
            </li>
          ))}
        </ul>
      )}
      {(trail.length > 0 || data?.hasMore === true) && (
        <div className="pages">
          <Button small disabled={trail.length === 0} onClick={() => setTrail(trail.slice(0, -1))}>
            {t('Newer')}
          </Button>
          <Button
            small
            disabled={data?.hasMore !== true}
            onClick={() => {
              const last = data?.deliveries.at(-1);
              if (last !== undefined) setTrail([...trail, last.deliveryId]);
            }}
          >
            {t('Older')}
          </Button>
        </div>
      )}
      {asked !== undefined && (
        <Confirm
          title={t('Replay this delivery?')}
          action={t('Replay')}
          onClose={() => setAsked(undefined)}
          run={async () => {
            const { deliveryId } = await client.call('webhooks.replay', { deliveryId: asked.deliveryId });
            setOutcome(t('Replayed as {deliveryId}.', { deliveryId }));
            found.reload();
            onReplayed();
          }}
        >
          <p>
            {t("The agent receives the message from {mapping} again, in the same conversation, with the agent's current tools.", {
              mapping: asked.mapping,
            })}
          </p>
        </Confirm>
      )}
    </section>
  );
}

function DeliveryRow({ delivery, isOpen, onReplay }: { readonly delivery: Delivery; readonly isOpen: boolean; readonly onReplay: () => void }) {
  const {
    deliveryId,
    mapping,
    state,
    message,
    receivedAt,
    conversationRef,
    turnId,
    finishReason,
    errorKind,
    senderId,
    repeats,
    replayOf,
    waiting,
    effectsRefused,
  } = delivery;
  return (
    <details className="feed-entry" open={isOpen}>
      <summary>
        <time dateTime={new Date(receivedAt).toISOString()} title={dateTime(receivedAt)}>
          {ago(receivedAt)}
        </time>
        <span className="feed-kind">{mapping}</span>
        <span className="feed-text" dir="auto">
          <Badge tone={tones[state]}>{state}</Badge> <Waiting waiting={waiting} /> <EffectsRefused count={effectsRefused} /> {message}
        </span>
      </summary>
      <div>
        <pre className="raw-text">{message}</pre>
        <WaitingReason waiting={waiting} />
        <dl className="facts">
          {fact(t('Received'), `${dateTime(receivedAt)}, ${bytes(delivery.bodyBytes)}`)}
          {delivery.endedAt !== null && fact(t('Ended'), dateTime(delivery.endedAt))}
          {errorKind !== null && fact(t('Error'), errorKind)}
          {delivery.cause !== undefined && fact(t('Cause'), delivery.cause)}
          {conversationRef !== null &&
            fact(
              t('Conversation'),
              <>
                <PageLink to={`/conversations/${conversationRef}`}>{conversationRef}</PageLink>
                {/* The waiting turn has no end yet. */}
                {turnId === null && waiting !== undefined && (
                  <>
                    {' · '}
                    <TraceLink reference={conversationRef} />
                  </>
                )}
              </>,
            )}
          {turnId !== null &&
            fact(
              t('Turn'),
              <>
                <ObjectLink id={turnId} />
                {finishReason === null ? '' : `, ${finishReason}`} · <TraceLink reference={turnId} />
              </>,
            )}
          {senderId !== null && fact(t('Sender id'), senderId)}
          {delivery.remoteAddress !== null && fact(t('From'), delivery.remoteAddress)}
          {repeats > 0 && fact(t('Duplicates'), plural(repeats, 'time'))}
          {replayOf !== null && fact(t('Replay of'), <ObjectLink id={replayOf} />)}
          {fact(t('Id'), deliveryId)}
        </dl>
        <div className="actions">
          <Button small icon="retry" label={t('Replay: {deliveryId}', { deliveryId })} onClick={onReplay}>
            {t('Replay')}
          </Button>
        </div>
      </div>
    </details>
  );
}

function fact(name: string, value: ReactNode) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}
