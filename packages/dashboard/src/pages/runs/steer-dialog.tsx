import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure, Field } from '../../ui/parts.tsx';
import type { Run } from './run-state.ts';
import { shortId } from './labels.ts';

/** Redirects a sub-agent with a message. */
export function SteerDialog({ run, onClose, onDone }: { readonly run: Run; readonly onClose: () => void; readonly onDone: (text: string) => void }) {
  const { client } = useSession();
  const [message, setMessage] = useState('');
  const action = useAction();
  const id = shortId(run.runId);
  const steer = async (): Promise<void> => {
    const done = await client.call('subagent.steer', { target: run.runId, message });
    onDone(
      done.status === 'steered'
        ? t('Stopped {id}; {newRunId} continues in the new direction.', { id, newRunId: shortId(done.newRunId) })
        : t('{id} reads it at its next step.', { id }),
    );
  };
  return (
    <Dialog title={t('Steer {agentId} ({id})', { agentId: run.agentId, id })} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          action.run(steer);
        }}
      >
        <div className="dialog-body">
          <Field
            label={t('Message')}
            hint={t("Depending on the gateway's settings, the sub-agent reads it at its next step, or is stopped and restarted with it as its task.")}
          >
            {(own, hint) => (
              <textarea id={own} aria-describedby={hint} rows={4} required value={message} onChange={(event) => setMessage(event.target.value)} />
            )}
          </Field>
        </div>
        {action.error !== undefined && <Failure error={action.error} />}
        <footer>
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button submit look="primary" disabled={action.busy || message.trim() === ''}>
            {action.busy ? t('Sending…') : t('Steer')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
