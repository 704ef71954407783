import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useSession } from '../../data/context.ts';
import { ago, dateTime, plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { TraceLink } from '../../ui/object-link.tsx';
import { Badge, Button, Empty, Failure, Skeleton, type Tone } from '../../ui/parts.tsx';
import { NextTry } from '../../ui/when.tsx';
import { channelEvents } from './channel-events.ts';

type Delivery = Result<'delivery.list'>['deliveries'][number];

const tones: Readonly<Record<Delivery['state'], Tone>> = {
  pending: 'accent',
  sending: 'accent',
  accepted: 'good',
  rejected: 'bad',
  unknown: 'warn',
  held: 'neutral',
  expired: 'bad',
};
const labels: Readonly<Record<Delivery['state'], string>> = {
  pending: 'pending',
  sending: 'sending',
  accepted: 'accepted',
  rejected: 'rejected',
  unknown: t('may have been sent'),
  held: 'held',
  expired: 'expired',
};
const resendable: ReadonlySet<Delivery['state']> = new Set(['unknown', 'rejected', 'expired']);

/** Lists messages to platforms with their state; what may have been sent is decided here. */
export function OutgoingList() {
  const { client } = useSession();
  const found = useLoad(['delivery.list'], (signal) => client.call('delivery.list', { limit: 50 }, { signal }), { changedBy: channelEvents });
  const { data } = found;
  return (
    <section aria-label={t('Messages out')}>
      <h2>{t('Messages out')}</h2>
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {data === undefined && found.loading && <Skeleton lines={3} />}
      {data?.deliveries.length === 0 && <Empty title={t('No messages yet')} />}
      {data !== undefined && data.deliveries.length > 0 && (
        <ul className="feed" aria-label={t('Messages out')}>
          {data.deliveries.map((delivery) => (
            <li key={delivery.deliveryId}>
              <Outgoing delivery={delivery} onChanged={found.reload} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Outgoing({ delivery, onChanged }: { readonly delivery: Delivery; readonly onChanged: () => void }) {
  const { client } = useSession();
  const { busy, error, run } = useAction();
  const { deliveryId, endpoint, state, text, part, parts, attempts, error: cause, createdAt, notBefore, turnId } = delivery;
  const decide = (decision: () => Promise<unknown>) => () =>
    run(async () => {
      await decision();
      onChanged();
    });
  return (
    <details className="feed-entry" open={state === 'unknown'}>
      <summary>
        <time dateTime={new Date(createdAt).toISOString()} title={dateTime(createdAt)}>
          {ago(createdAt)}
        </time>
        <span className="feed-kind">{endpoint.conversationId}</span>
        <span className="feed-text" dir="auto">
          <Badge tone={tones[state]}>{labels[state]}</Badge> {text}
        </span>
      </summary>
      <div>
        <pre className="raw-text">{text}</pre>
        <dl className="facts">
          <dt>{t('To')}</dt>
          <dd>
            {t('{conversationId} on {channelInstanceId}{part}', {
              conversationId: endpoint.conversationId,
              channelInstanceId: endpoint.channelInstanceId,
              part: parts > 1 ? t(', part {part} of {parts}', { part, parts }) : '',
            })}
          </dd>
          <dt>{t('Tries')}</dt>
          <dd>{plural(attempts, 'time')}</dd>
          {cause !== null && (
            <>
              <dt>{t('Cause')}</dt>
              <dd>
                {cause} {state === 'pending' && notBefore !== null && <NextTry atMs={notBefore} />}
              </dd>
            </>
          )}
          {turnId !== null && (
            <>
              <dt>{t('Turn')}</dt>
              <dd>
                <TraceLink reference={turnId} />
              </dd>
            </>
          )}
        </dl>
        {error !== undefined && <Failure error={error} />}
        {resendable.has(state) && (
          <div className="actions">
            <Button
              small
              icon="retry"
              label={t('Send again: {deliveryId}', { deliveryId })}
              disabled={busy}
              onClick={decide(() => client.call('delivery.resend', { deliveryId }))}
            >
              {t('Send again')}
            </Button>
            {state === 'unknown' && (
              <Button
                small
                icon="check"
                label={t('It was sent: {deliveryId}', { deliveryId })}
                disabled={busy}
                onClick={decide(() => client.call('delivery.settle', { deliveryId, as: 'accepted' }))}
              >
                {t('It was sent')}
              </Button>
            )}
          </div>
        )}
      </div>
    </details>
  );
}
