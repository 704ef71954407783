import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, dateTime, plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { spanText } from '../../ui/elapsed.tsx';
import { FailedTraces } from '../../ui/object-link.tsx';
import { AdminOnly, Badge, Button, Empty, Failure, Page, Skeleton, type Tone } from '../../ui/parts.tsx';
import { NextTry } from '../../ui/when.tsx';
import { channelEvents } from './channel-events.ts';
import { AddChannel } from './add-channel.tsx';
import { ChannelSettings } from './channel-settings.tsx';
import { OutgoingList } from './outgoing-list.tsx';
import { IncomingList } from './incoming-list.tsx';
import { Pairings } from './pairings.tsx';

type Health = Result<'channels.health'>['channels'][number];

const tones: Readonly<Record<Health['state'], Tone>> = {
  healthy: 'good',
  'startup-grace': 'accent',
  disconnected: 'warn',
  errored: 'bad',
  unauthorized: 'bad',
  disabled: 'neutral',
};
const labels: Readonly<Record<Health['state'], string>> = {
  healthy: 'connected',
  'startup-grace': 'connecting',
  disconnected: 'disconnected',
  errored: t('cannot connect'),
  unauthorized: 'refused',
  disabled: 'disabled',
};
/** Shows chat platforms: how they are, who may write, and the messages both ways. */
export function ChannelsPage() {
  const { admin } = useSession();
  return admin ? <Whole /> : <AdminOnly title={t('Channels')} />;
}

function Whole() {
  const { client } = useSession();
  const found = useLoad(['channels.health'], (signal) => client.call('channels.health', {}, { signal }), { changedBy: channelEvents });
  const [isAdding, setIsAdding] = useState(false);
  const [editing, setEditing] = useState<Health>();
  const channels = found.data?.channels.filter(({ connectionMode }) => connectionMode !== 'built-in');
  const add = (
    <Button icon="plus" look="primary" onClick={() => setIsAdding(true)}>
      {t('Add a channel')}
    </Button>
  );
  if (editing !== undefined)
    return <ChannelSettings channel={{ name: editing.channelInstanceId, type: editing.channelType }} onClose={() => setEditing(undefined)} />;
  return (
    <Page title={t('Channels')} lead={t('Chat platforms over which people write to agents.')} actions={add}>
      {isAdding && <AddChannel onClose={() => setIsAdding(false)} onAdded={found.reload} />}
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {channels === undefined && found.loading && <Skeleton lines={5} />}
      {channels?.length === 0 && (
        <Empty title={t('No channels yet')}>
          <p>{tx('Connect one here, or with {code}.', { code: <code>gatehouse channels add</code> })}</p>
        </Empty>
      )}
      {channels !== undefined && channels.length > 0 && (
        <>
          <ul className="rows" aria-label={t('Channels')}>
            {channels.map((channel) => (
              <ChannelRow key={channel.channelInstanceId} channel={channel} onChanged={found.reload} onEdit={() => setEditing(channel)} />
            ))}
          </ul>
          <Pairings />
          <IncomingList />
          <OutgoingList />
        </>
      )}
    </Page>
  );
}

interface RowProps {
  readonly channel: Health;
  readonly onChanged: () => void;
  readonly onEdit: () => void;
}

function ChannelRow({ channel, onChanged, onEdit }: RowProps) {
  const { client } = useSession();
  const { busy, error, run } = useAction();
  const {
    channelInstanceId: name,
    channelType,
    state,
    error: cause,
    retryAt,
    lastMessageAt,
    lastSentAt,
    activeRuns,
    uptimeMs,
    dropped,
    held,
    queued,
  } = channel;
  const change = (method: 'channels.enable' | 'channels.disable' | 'channels.restart') => () =>
    run(async () => {
      await client.call(method, { channel_type: channelType, channel_instance_id: name });
      onChanged();
    });
  const count = Object.values(dropped).reduce((sum, one) => sum + one, 0);
  return (
    <li className="row">
      <div className="row-main">
        <span className="row-title">{name}</span>
        <p className="hint">
          {channelType}
          {state === 'healthy' && ` ${t('· connected for {uptime}', { uptime: spanText(uptimeMs) })}`}
          {activeRuns > 0 && ` ${t('· {turns} running', { turns: plural(activeRuns, 'turn') })}`}
          {queued > 0 && ` ${t('· {messages} waiting to be sent', { messages: plural(queued, 'message') })}`}
          {held > 0 && ` ${t('· {messages} held in quiet hours', { messages: plural(held, 'message') })}`}
          {count > 0 && (
            <span
              title={Object.entries(dropped)
                .map(([reason, n]) => `${reason}: ${n}`)
                .join(', ')}
            >{` ${t('· {messages} without a turn', { messages: plural(count, 'message') })}`}</span>
          )}
        </p>
        {cause !== null && (
          <p role="status">
            {cause} {retryAt !== null && <NextTry atMs={retryAt} />}
          </p>
        )}
        <p>
          <FailedTraces where={`chat = "${name}" and error`} label={t('Failed turns of {name}', { name })} />
        </p>
        {error !== undefined && <Failure error={error} />}
      </div>
      <div className="row-facts">
        <Badge tone={tones[state]}>{labels[state]}</Badge>
        {lastMessageAt !== null && <span title={dateTime(lastMessageAt)}>{t('last in {lastMessageAt}', { lastMessageAt: ago(lastMessageAt) })}</span>}
        {lastSentAt !== null && <span title={dateTime(lastSentAt)}>{t('last out {lastSentAt}', { lastSentAt: ago(lastSentAt) })}</span>}
      </div>
      <div className="actions">
        <Button small icon="sliders" label={t('Settings of {name}', { name })} onClick={onEdit}>
          {t('Settings')}
        </Button>
        {state === 'disabled' ? (
          <Button small label={t('Enable {name}', { name })} disabled={busy} onClick={change('channels.enable')}>
            {t('Enable')}
          </Button>
        ) : (
          <>
            <Button small icon="retry" label={t('Reconnect {name}', { name })} disabled={busy} onClick={change('channels.restart')}>
              {t('Reconnect')}
            </Button>
            <Button small label={t('Disable {name}', { name })} disabled={busy} onClick={change('channels.disable')}>
              {t('Disable')}
            </Button>
          </>
        )}
      </div>
    </li>
  );
}
