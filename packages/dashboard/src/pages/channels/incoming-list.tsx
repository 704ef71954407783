import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useSession } from '../../data/context.ts';
import { ago, dateTime } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { PageLink } from '../../ui/link.tsx';
import { Badge, Button, Empty, Failure, Skeleton } from '../../ui/parts.tsx';
import { channelEvents } from './channel-events.ts';

type Message = Result<'channels.messages'>['messages'][number];

const reasons: Readonly<Record<string, string>> = {
  pairing: t('not approved yet'),
  not_allowed: t('not allowed'),
  disabled: 'disabled',
  bot: t('from a bot'),
  suspended: t('agent suspended'),
  full: t('too many messages'),
};

/** Lists messages that came in, with the reason of those that started no turn. */
export function IncomingList() {
  const { client } = useSession();
  const found = useLoad(['channels.messages'], (signal) => client.call('channels.messages', { limit: 50 }, { signal }), { changedBy: channelEvents });
  const { data } = found;
  return (
    <section aria-label={t('Messages in')}>
      <h2>{t('Messages in')}</h2>
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {data === undefined && found.loading && <Skeleton lines={3} />}
      {data?.messages.length === 0 && <Empty title={t('No messages yet')} />}
      {data !== undefined && data.messages.length > 0 && (
        <ul className="feed" aria-label={t('Messages in')}>
          {data.messages.map((message) => (
            <li key={message.messageId}>
              <Incoming message={message} onChanged={found.reload} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Incoming({ message, onChanged }: { readonly message: Message; readonly onChanged: () => void }) {
  const { client } = useSession();
  const { busy, error, run } = useAction();
  const { endpoint, senderId, senderName, text, verdict, state, receivedAt, conversationRef, agentId } = message;
  const isTurn = verdict === 'turn';
  return (
    <details className="feed-entry">
      <summary>
        <time dateTime={new Date(receivedAt).toISOString()} title={dateTime(receivedAt)}>
          {ago(receivedAt)}
        </time>
        <span className="feed-kind">{senderName}</span>
        <span className="feed-text" dir="auto">
          <Badge tone={!isTurn ? 'warn' : state === 'done' ? 'good' : state === 'failed' || state === 'aborted' ? 'bad' : 'accent'}>
            {isTurn ? (state ?? t('turn')) : (reasons[verdict] ?? verdict)}
          </Badge>{' '}
          {text}
        </span>
      </summary>
      <div>
        <pre className="raw-text">{text}</pre>
        <dl className="facts">
          <dt>{t('Sender')}</dt>
          <dd className="mono">{senderId}</dd>
          <dt>{t('Where')}</dt>
          <dd>
            {t('{conversationId} on {channelInstanceId}', { conversationId: endpoint.conversationId, channelInstanceId: endpoint.channelInstanceId })}
          </dd>
          <dt>{t('Agent')}</dt>
          <dd>{agentId}</dd>
          {conversationRef !== null && (
            <>
              <dt>{t('Conversation')}</dt>
              <dd>
                <PageLink to={`/conversations/${conversationRef}`}>{conversationRef}</PageLink>
              </dd>
            </>
          )}
        </dl>
        {error !== undefined && <Failure error={error} />}
        {(verdict === 'suspended' || verdict === 'full') && (
          <div className="actions">
            <Button
              small
              icon="retry"
              label={t('Answer: {messageId}', { messageId: message.messageId })}
              disabled={busy}
              onClick={() => run(() => client.call('channels.retry', { messageId: message.messageId }).then(onChanged))}
            >
              {t('Answer now')}
            </Button>
          </div>
        )}
      </div>
    </details>
  );
}
