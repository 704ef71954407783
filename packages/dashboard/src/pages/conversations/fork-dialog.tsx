import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { count, plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { navigate } from '../../router.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure, Field } from '../../ui/parts.tsx';

/** Creates a conversation from the first messages of another one, and opens it. */
export function ForkDialog({
  session,
  total,
  seq,
  onClose,
}: {
  readonly session: Result<'session.history'>['session'];
  readonly total: number;
  /** The last message to copy. */
  readonly seq: number;
  readonly onClose: () => void;
}) {
  const { client } = useSession();
  const [last, setLast] = useState(String(seq));
  const [key, setKey] = useState('');
  const { busy, error, run } = useAction();
  const fork = async (): Promise<void> => {
    const { conversationRef } = session;
    const made = await client.call('session.fork', { conversationRef, seq: Number(last), ...(key.trim() !== '' && { forkKey: key.trim() }) });
    onClose();
    navigate(`/chat/${made.conversationRef}`);
  };
  return (
    <Dialog title={t('Fork this conversation')} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          run(fork);
        }}
      >
        <div className="dialog-body">
          <p>{t('The new conversation starts with the messages up to the one you choose. This conversation stays unchanged.')}</p>
          <Field label={t('Last message to include')} hint={t('From 1 to {total}.', { total: count(total) })}>
            {(id, hint) => (
              <input
                id={id}
                aria-describedby={hint}
                type="number"
                required
                min={1}
                max={total}
                value={last}
                onChange={(event) => setLast(event.target.value)}
              />
            )}
          </Field>
          <Field label={t('Session key')} hint={t('For example ada:desk. Leave empty to generate one.')}>
            {(id, hint) => <input id={id} aria-describedby={hint} value={key} onChange={(event) => setKey(event.target.value)} />}
          </Field>
        </div>
        {error !== undefined && <Failure error={error} />}
        <footer>
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button submit look="primary" disabled={busy}>
            {busy ? t('Working…') : t('Fork with {messages}', { messages: plural(Number(last) || 0, 'message') })}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
