import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { Confirm } from '../../ui/dialog.tsx';
import type { RootAction } from './root-row.tsx';
import type { RootRun, Run } from './run-state.ts';
import { shortId } from './words.ts';

interface Ends {
  readonly onClose: () => void;
  readonly onDone: (words: string) => void;
}

/** Ends a sub-agent with what it delegated. */
export function KillRun({ run, onClose, onDone }: Ends & { readonly run: Run }) {
  const { client } = useSession();
  return (
    <Confirm
      title={`Kill the sub-agent ${shortId(run.runId)}?`}
      action="Kill"
      onClose={onClose}
      run={async () => {
        await client.call('subagent.kill', { target: run.runId });
        onDone(`${shortId(run.runId)} is killed.`);
      }}
    >
      <p>It ends at once, with everything that it delegated. Whoever asked for it is told.</p>
    </Confirm>
  );
}

const confirms: Readonly<Record<RootAction, { readonly verb: string; readonly words: string }>> = {
  kill: { verb: 'Kill', words: 'Its turn, its graphs, scripts and sub-agents end at once, and its leases are taken back.' },
  revoke: {
    verb: 'Revoke the leases of',
    words: 'What runs by them is refused at its next step: its sub-agents and scripts end, and the run never goes on.',
  },
  evict: { verb: 'Evict', words: 'Its profile falls back to standard at its next decision. Nothing is ended.' },
};

/** Asks before something is done with a whole root run. */
export function RootConfirm({ action, root, onClose, onDone }: Ends & { readonly action: RootAction; readonly root: RootRun }) {
  const { client } = useSession();
  const { rootRunId } = root;
  const id = shortId(rootRunId);
  const { verb, words } = confirms[action];
  const run = async (): Promise<void> => {
    switch (action) {
      case 'kill':
        return onDone(`${plural((await client.call('run.kill', { rootRunId })).killed, 'run')} ended.`);
      case 'revoke':
        return onDone(`${plural((await client.call('lease.revoke', { rootRunId })).revoked, 'lease')} of ${id} taken back.`);
      case 'evict':
        await client.call('autonomy.evict', { rootRunId });
        return onDone(`${id} has the profile standard from its next decision on.`);
    }
  };
  return (
    <Confirm
      title={`${verb} the run ${id}?`}
      action={action === 'kill' ? 'Kill' : action === 'revoke' ? 'Revoke' : 'Evict'}
      onClose={onClose}
      run={run}
    >
      <p className="mono">{rootRunId}</p>
      <p>{words}</p>
    </Confirm>
  );
}
