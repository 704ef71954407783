import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, dateTime } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { Badge, Button, Failure, Field } from '../../ui/parts.tsx';
import { channelEvents } from './channel-events.ts';

type Pairing = Result<'channels.pairings'>['pairings'][number];

/** Approves people by the code that they were shown, and lists those who may write. */
export function Pairings() {
  const { client } = useSession();
  const found = useLoad(['channels.pairings'], (signal) => client.call('channels.pairings', {}, { signal }), { changedBy: channelEvents });
  const [code, setCode] = useState('');
  const [person, setPerson] = useState('');
  const [asked, setAsked] = useState<Pairing>();
  const { busy, error, run } = useAction();
  const approve = () =>
    run(async () => {
      await client.call('channels.pair', { code: code.trim(), ...(person.trim() !== '' && { person: person.trim() }) });
      setCode('');
      setPerson('');
      found.reload();
    });
  const pairings = found.data?.pairings ?? [];
  return (
    <section aria-label={t('People')}>
      <h2>{t('People')}</h2>
      <p className="hint">{t('Somebody who writes directly for the first time gets a code. Enter it here to approve the sender.')}</p>
      <form
        className="toolbar"
        onSubmit={(event) => {
          event.preventDefault();
          approve();
        }}
      >
        <Field label={t('Code')}>
          {(id) => (
            <input
              id={id}
              className="mono"
              autoComplete="off"
              required
              minLength={8}
              maxLength={16}
              value={code}
              onChange={(event) => setCode(event.target.value)}
            />
          )}
        </Field>
        <Field label={t('Person (optional)')}>
          {(id) => <input id={id} autoComplete="off" value={person} onChange={(event) => setPerson(event.target.value)} />}
        </Field>
        <Button submit disabled={busy || code.trim().length < 8}>
          {t('Approve')}
        </Button>
      </form>
      {error !== undefined && <Failure error={error} />}
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {pairings.length > 0 && (
        <ul className="rows" aria-label={t('Pairings')}>
          {pairings.map((one) => (
            <li key={one.pairingId} className="row">
              <div className="row-main">
                <span className="row-title">{one.senderName}</span>
                <p className="mono hint">{one.senderId}</p>
              </div>
              <div className="row-facts">
                <Badge tone={one.state === 'pending' ? 'warn' : 'good'}>{one.state}</Badge>
                <span>{one.channelInstanceId}</span>
                {one.person !== null && <span>{t('as {person}', { person: one.person })}</span>}
                <span title={dateTime(one.requestedAt)}>{ago(one.requestedAt)}</span>
              </div>
              <div className="actions">
                <Button small label={`${one.state === 'pending' ? t('Refuse') : t('Remove')} ${one.senderName}`} onClick={() => setAsked(one)}>
                  {one.state === 'pending' ? t('Refuse') : t('Remove')}
                </Button>
              </div>
            </li>
          ))}
        </ul>
      )}
      {asked !== undefined && (
        <Confirm
          title={t('Remove {senderName}?', { senderName: asked.senderName })}
          action={t('Remove')}
          onClose={() => setAsked(undefined)}
          run={async () => {
            await client.call('channels.unpair', { pairingId: asked.pairingId });
            found.reload();
          }}
        >
          <p>{t('The sender is not answered any more, and needs a new code.')}</p>
        </Confirm>
      )}
    </section>
  );
}
