import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { Confirm } from '../../ui/dialog.tsx';
import type { RootAction } from './root-table.tsx';
import type { RootRun, Run } from './run-state.ts';
import { shortId } from './labels.ts';

interface Ends {
  readonly onClose: () => void;
  readonly onDone: (text: string) => void;
}

/** Kills a sub-agent together with everything it delegated. */
export function KillRun({ run, onClose, onDone }: Ends & { readonly run: Run }) {
  const { client } = useSession();
  return (
    <Confirm
      title={`Kill sub-agent ${run.agentId} (${shortId(run.runId)})?`}
      action="Kill"
      onClose={onClose}
      run={async () => {
        await client.call('subagent.kill', { target: run.runId });
        onDone(`Killed ${shortId(run.runId)}.`);
      }}
    >
      <p>Stops it immediately, with everything it delegated, and notifies its requester.</p>
    </Confirm>
  );
}

const confirms: Readonly<Record<RootAction, { readonly verb: string; readonly text: string }>> = {
  kill: { verb: 'Kill', text: 'Stops its turn, graphs, scripts and sub-agents immediately, and revokes its leases.' },
  revoke: {
    verb: 'Revoke leases of',
    text: 'Work under these leases is refused at its next step: its sub-agents and scripts stop, and the run never resumes.',
  },
  evict: { verb: 'Evict', text: 'Its profile returns to standard at its next decision. Nothing is stopped.' },
};

/** Asks for confirmation of an action on a whole root run. */
export function RootConfirm({ action, root, onClose, onDone }: Ends & { readonly action: RootAction; readonly root: RootRun }) {
  const { client } = useSession();
  const { rootRunId } = root;
  const id = shortId(rootRunId);
  const { verb, text } = confirms[action];
  const run = async (): Promise<void> => {
    switch (action) {
      case 'kill':
        return onDone(`${plural((await client.call('run.kill', { rootRunId })).killed, 'run')} killed.`);
      case 'revoke':
        return onDone(`${plural((await client.call('lease.revoke', { rootRunId })).revoked, 'lease')} of ${id} revoked.`);
      case 'evict':
        await client.call('autonomy.evict', { rootRunId });
        return onDone(`${id} uses the profile standard from its next decision.`);
    }
  };
  return (
    <Confirm
      title={`${verb} run ${id} of ${root.agentId}?`}
      action={action === 'kill' ? 'Kill' : action === 'revoke' ? 'Revoke' : 'Evict'}
      onClose={onClose}
      run={run}
    >
      <p className="mono">{rootRunId}</p>
      <p>{text}</p>
    </Confirm>
  );
}
