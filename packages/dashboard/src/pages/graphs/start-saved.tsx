import { t } from '../../language.ts';
import { useSession } from '../../data/context.ts';
import { useLoad } from '../../data/use-load.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Failure, Skeleton } from '../../ui/parts.tsx';
import { StartDialog } from './start-dialog.tsx';

/** Loads a saved graph and starts it. */
export function StartSaved({ saved, onClose }: { readonly saved: { readonly id: string; readonly label: string }; readonly onClose: () => void }) {
  const { client } = useSession();
  const { data, error, reload } = useLoad(['graph.load', 'graph.define', saved.id], async (signal) => {
    const { graphId, nodes, edges, settings } = await client.call('graph.load', { id: saved.id }, { signal });
    const { userVariables } = await client.call('graph.define', { nodes, edges, settings }, { signal });
    return { graphId, userVariables, asksPeople: nodes.some((node) => node.type_id === 'approval-gate') };
  });
  if (data !== undefined)
    return (
      <StartDialog
        name={saved.label}
        startable={{ graphId: data.graphId }}
        variables={data.userVariables}
        asksPeople={data.asksPeople}
        onClose={onClose}
      />
    );
  return (
    <Dialog title={t('Run {label}', { label: saved.label })} onClose={onClose}>
      <div className="dialog-body">{error === undefined && <Skeleton lines={3} />}</div>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
    </Dialog>
  );
}
