import { t } from '../../language.ts';
import { useSession } from '../../data/context.ts';
import { useLoad } from '../../data/use-load.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Failure, Skeleton } from '../../ui/parts.tsx';
import { StartDialog } from './start-dialog.tsx';

/** Starts what a run ran once more, with its variables to change. */
export function RunAgain({
  graphId,
  label,
  onClose,
}: {
  readonly graphId: string;
  readonly label: string | undefined;
  readonly onClose: () => void;
}) {
  const { client } = useSession();
  const { data, error, reload } = useLoad(['graph.runDetail', 'graph.define', graphId], async (signal) => {
    const { definition, variables } = await client.call('graph.runDetail', { graphId }, { signal });
    const { userVariables } = await client.call('graph.define', definition, { signal });
    return { definition, variables, userVariables, asksPeople: definition.nodes.some((node) => node.type_id === 'approval-gate') };
  });
  const name = label ?? 'graph';
  if (data !== undefined)
    return (
      <StartDialog
        name={t('{name} again', { name })}
        startable={{ definition: { ...data.definition, ...(label !== undefined && { label }) } }}
        variables={data.userVariables}
        asksPeople={data.asksPeople}
        initial={data.variables}
        onClose={onClose}
      />
    );
  return (
    <Dialog title={t('Run {name} again', { name })} onClose={onClose}>
      <div className="dialog-body">{error === undefined && <Skeleton lines={3} />}</div>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
    </Dialog>
  );
}
