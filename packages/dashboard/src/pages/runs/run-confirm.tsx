import { t } from '../../language.ts';
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
      title={t('Kill sub-agent {agentId} ({runId})?', { agentId: run.agentId, runId: shortId(run.runId) })}
      action={t('Kill')}
      onClose={onClose}
      run={async () => {
        await client.call('subagent.kill', { target: run.runId });
        onDone(t('Killed {runId}.', { runId: shortId(run.runId) }));
      }}
    >
      <p>{t('Stops it immediately, with everything it delegated, and notifies its requester.')}</p>
    </Confirm>
  );
}

const confirms: Readonly<Record<RootAction, { readonly verb: string; readonly text: string }>> = {
  kill: { verb: t('Kill'), text: t('Stops its turn, graphs, scripts and sub-agents immediately, and revokes its leases.') },
  revoke: {
    verb: t('Revoke leases of'),
    text: t('Work under these leases is refused at its next step: its sub-agents and scripts stop, and the run never resumes.'),
  },
  evict: { verb: t('Evict'), text: t('Its profile returns to standard at its next decision. Nothing is stopped.') },
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
        return onDone(t('{runs} killed.', { runs: plural((await client.call('run.kill', { rootRunId })).killed, 'run') }));
      case 'revoke':
        return onDone(t('{leases} of {id} revoked.', { leases: plural((await client.call('lease.revoke', { rootRunId })).revoked, 'lease'), id }));
      case 'evict':
        await client.call('autonomy.evict', { rootRunId });
        return onDone(t('{id} uses the profile standard from its next decision.', { id }));
    }
  };
  return (
    <Confirm
      title={t('{verb} run {id} of {agentId}?', { verb, id, agentId: root.agentId })}
      action={action === 'kill' ? t('Kill') : action === 'revoke' ? t('Revoke') : t('Evict')}
      onClose={onClose}
      run={run}
    >
      <p className="mono">{rootRunId}</p>
      <p>{text}</p>
    </Confirm>
  );
}
