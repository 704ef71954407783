import { useId, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { navigate } from '../../router.ts';
import { Confirm } from '../../ui/dialog.tsx';
import type { GraphView } from './graph-state.ts';

/** Runs an ended graph again from a node, with the results of the nodes before it. */
export function RetryDialog({ graphId, view, onClose }: { readonly graphId: string; readonly view: GraphView; readonly onClose: () => void }) {
  const { client } = useSession();
  const id = useId();
  const { executionOrder, nodes } = view;
  const failed = executionOrder.filter((one) => nodes[one]?.status !== 'completed');
  const asksPeople = executionOrder.some((one) => nodes[one]?.type_id === 'approval-gate');
  const [from, setFrom] = useState(failed.length > 0 ? '' : (executionOrder[0] ?? ''));
  return (
    <Confirm
      title="Run again from a node"
      action="Run"
      onClose={onClose}
      run={async () => {
        const started = await client.call('graph.retry', {
          graphId,
          ...(from !== '' && { nodeId: from }),
          ...(asksPeople && { announceChannelType: 'gateway', announceChannelId: 'inbox' }),
        });
        navigate(`/graphs/runs/${started.graphId}`);
      }}
    >
      <p>Nodes that have completed and do not depend on it keep their results.</p>
      <label htmlFor={id}>From</label>
      <select id={id} value={from} onChange={(event) => setFrom(event.target.value)}>
        {failed.length > 0 && <option value="">{`What did not complete (${plural(failed.length, 'node')})`}</option>}
        {executionOrder.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </Confirm>
  );
}
