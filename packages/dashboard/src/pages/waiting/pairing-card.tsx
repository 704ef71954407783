import { t, tx } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { dateTime } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import type { WaitingPairing } from '../../data/waiting.ts';
import { Button, Failure } from '../../ui/parts.tsx';
import { WaitingCard } from './waiting-card.tsx';

const codeLength = { min: 8, max: 16 };

/** Somebody who wrote over a channel for the first time: let in by the code that they were shown. */
export function PairingCard({ pairing }: { readonly pairing: WaitingPairing }) {
  const { client, waiting } = useSession();
  const [code, setCode] = useState('');
  const { busy, error, run } = useAction();
  const { pairingId, senderName, senderId, channelInstanceId, requestedAt, expiresAt } = pairing;
  return (
    <WaitingCard
      badge={t('Pairing')}
      title={t('{senderName} wants to write to your agent', { senderName })}
      sinceMs={requestedAt}
      facts={<span>{channelInstanceId}</span>}
    >
      <p className="hint">
        {tx('The sender was shown a code. Enter it to let {span} in', { span: <span className="mono">{senderId}</span> })}
        {expiresAt === null ? '.' : ` ${t('before {expiresAt}.', { expiresAt: dateTime(expiresAt) })}`}
      </p>
      {error !== undefined && <Failure error={error} />}
      <form
        className="approval-foot actions"
        onSubmit={(event) => {
          event.preventDefault();
          run(() => client.call('channels.pair', { code: code.trim() }).then(waiting.reload));
        }}
      >
        <input
          className="mono"
          aria-label={t('Code of {senderName}', { senderName })}
          placeholder={t('Code')}
          autoComplete="off"
          required
          minLength={codeLength.min}
          maxLength={codeLength.max}
          value={code}
          onChange={(event) => setCode(event.target.value)}
        />
        <Button
          look="danger"
          disabled={busy}
          label={t('Refuse {senderName}', { senderName })}
          onClick={() => run(() => client.call('channels.unpair', { pairingId }).then(waiting.reload))}
        >
          {t('Refuse')}
        </Button>
        <Button submit look="primary" disabled={busy || code.trim().length < codeLength.min} label={t('Accept {senderName}', { senderName })}>
          {t('Accept')}
        </Button>
      </form>
    </WaitingCard>
  );
}
