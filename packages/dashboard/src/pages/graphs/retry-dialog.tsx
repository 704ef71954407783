import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { navigate } from '../../router.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure, Field } from '../../ui/parts.tsx';
import type { GraphView } from './graph-state.ts';

/** Runs an ended graph again from a node, with the results of the nodes before it. */
export function RetryDialog({ graphId, view, onClose }: { readonly graphId: string; readonly view: GraphView; readonly onClose: () => void }) {
  const { client } = useSession();
  const { executionOrder, nodes } = view;
  const failed = executionOrder.filter((one) => nodes[one]?.status !== 'completed');
  const asksPeople = executionOrder.some((one) => nodes[one]?.type_id === 'approval-gate');
  const [from, setFrom] = useState(failed.length > 0 ? '' : (executionOrder[0] ?? ''));
  const action = useAction();
  const run = async (): Promise<void> => {
    const started = await client.call('graph.retry', {
      graphId,
      ...(from !== '' && { nodeId: from }),
      ...(asksPeople && { announceChannelType: 'gateway', announceChannelId: 'inbox' }),
    });
    onClose();
    navigate(`/graphs/runs/${started.graphId}`);
  };
  return (
    <Dialog title={t('Run again from a node')} onClose={onClose}>
      <div className="dialog-body">
        <Field label={t('From')} hint={t('Nodes that have completed and do not depend on it keep their results.')} wide>
          {(id, hint) => (
            <select id={id} aria-describedby={hint} value={from} onChange={(event) => setFrom(event.target.value)}>
              {failed.length > 0 && <option value="">{t('What did not complete ({nodes})', { nodes: plural(failed.length, 'node') })}</option>}
              {executionOrder.map((one) => (
                <option key={one} value={one}>
                  {one}
                </option>
              ))}
            </select>
          )}
        </Field>
        {action.error !== undefined && <Failure error={action.error} />}
      </div>
      <footer>
        <Button onClick={onClose}>{t('Cancel')}</Button>
        <Button look="primary" disabled={action.busy} onClick={() => action.run(run)}>
          {t('Run')}
        </Button>
      </footer>
    </Dialog>
  );
}
