import { t, tx } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure, Field } from '../../ui/parts.tsx';

/** Deletes all memories of an agent after the user has typed its id. */
export function FlushDialog({
  agentId,
  total,
  onClose,
  onDone,
}: {
  readonly agentId: string;
  readonly total: number | undefined;
  readonly onClose: () => void;
  readonly onDone: (text: string) => void;
}) {
  const { client } = useSession();
  const [typed, setTyped] = useState('');
  const { busy, error, run } = useAction();
  const flush = async (): Promise<void> => {
    const { entriesRemoved } = await client.call('memory.flush', { agentId });
    onDone(t('Flushed: deleted {memories} of {agentId}.', { memories: plural(entriesRemoved, 'memory', 'memories'), agentId }));
    onClose();
  };
  return (
    <Dialog title={t('Delete all memories of {agentId}?', { agentId })} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (typed === agentId) run(flush);
        }}
      >
        <div className="dialog-body">
          <p>
            {tx(
              "{memories} of this agent are deleted, including those of all users and of the system. This can't be undone; export them first to keep a copy.",
              { memories: total === undefined ? t('All memories') : t('All {memories}', { memories: plural(total, 'memory', 'memories') }) },
            )}
          </p>
          <Field label={t('Type {agentId} to confirm', { agentId })}>
            {(id) => <input id={id} autoComplete="off" spellCheck={false} value={typed} onChange={(event) => setTyped(event.target.value)} />}
          </Field>
        </div>
        {error !== undefined && <Failure error={error} />}
        <footer>
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button submit look="danger" disabled={busy || typed !== agentId}>
            {busy ? t('Working…') : t('Flush')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
