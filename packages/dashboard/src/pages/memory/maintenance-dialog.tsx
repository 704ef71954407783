import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { count, plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure } from '../../ui/parts.tsx';

type Report = Result<'memory.lifecycle'>;

const actionLabels = { promote: 'Promote', demote: 'Demote', evict: 'Evict' } as const;
/** Timeout for a review, which calls a model once per conversation. */
const patienceMs = 600_000;

/** Runs the conversation review and the memory lifecycle now; the lifecycle shows its plan first. */
export function MaintenanceDialog({
  agentId,
  onClose,
  onDone,
}: {
  readonly agentId: string;
  readonly onClose: () => void;
  readonly onDone: (text: string) => void;
}) {
  const { client } = useSession();
  const [plan, setPlan] = useState<Report>();
  const { busy, running, error, run } = useAction();
  const review = async (): Promise<void> => {
    const done = await client.call('memory.review', { agentId }, { timeoutMs: patienceMs });
    onDone(
      `Reviewed ${plural(done.conversationsReviewed, 'conversation')} of ${agentId}: ${count(done.admitted)} of ${plural(done.extracted, 'finding')} stored, ${count(done.duplicates)} already known${done.more ? '; more are left for the next run' : ''}.`,
    );
    onClose();
  };
  const sweep = async (): Promise<void> => {
    const done = await client.call('memory.lifecycle', { agentId, dryRun: false }, { timeoutMs: patienceMs });
    onDone(
      `Swept: ${count(done.promoted)} promoted, ${count(done.demoted)} demoted, ${count(done.evicted)} evicted of ${plural(done.examined, 'memory', 'memories')}.`,
    );
    onClose();
  };
  return (
    <Dialog title={`Memory maintenance for ${agentId}`} onClose={onClose} wide>
      <div className="dialog-body">
        <section className="panel" aria-label="Review">
          <h3>Review</h3>
          <p>Reads conversations that changed since the last review and stores what is worth remembering. Uses a model, which costs tokens.</p>
          <div>
            <Button disabled={busy} onClick={() => run(review, 'review')}>
              {running === 'review' ? 'Reviewing…' : 'Review now'}
            </Button>
          </div>
        </section>
        <section className="panel" aria-label="Lifecycle">
          <h3>Lifecycle</h3>
          <p>Promotes memories that are used, demotes fading ones, and evicts expired ones and those over the limits.</p>
          <div className="actions">
            <Button
              disabled={busy}
              onClick={() =>
                run(async () => setPlan(await client.call('memory.lifecycle', { agentId, dryRun: true }, { timeoutMs: patienceMs })), 'plan')
              }
            >
              {running === 'plan' ? 'Planning…' : 'Show plan'}
            </Button>
            {plan !== undefined && plan.promoted + plan.demoted + plan.evicted > 0 && (
              <Button look="danger" disabled={busy} onClick={() => run(sweep, 'sweep')}>
                {running === 'sweep' ? 'Sweeping…' : 'Apply'}
              </Button>
            )}
          </div>
          {plan !== undefined && <Plan plan={plan} />}
        </section>
      </div>
      {error !== undefined && <Failure error={error} />}
      <footer>
        <Button onClick={onClose}>Close</Button>
      </footer>
    </Dialog>
  );
}

function Plan({ plan: { examined, promoted, demoted, evicted, actions, more } }: { readonly plan: Report }) {
  const planned = promoted + demoted + evicted;
  if (planned === 0) return <p role="status">{`Nothing to do: checked ${plural(examined, 'memory', 'memories')}.`}</p>;
  return (
    <>
      <p role="status">
        {`Of ${plural(examined, 'memory', 'memories')}: ${count(promoted)} to promote, ${count(demoted)} to demote, ${count(evicted)} to evict${more ? ', and more in later runs' : ''}.`}
      </p>
      <div className="table-scroll plan-list" tabIndex={0} role="region" aria-label="Plan">
        <table>
          <thead>
            <tr>
              <th scope="col">Action</th>
              <th scope="col">Memory</th>
              <th scope="col">Reason</th>
            </tr>
          </thead>
          <tbody>
            {actions.map(({ id, kind, reason }) => (
              <tr key={`${kind} ${id}`}>
                <td>{actionLabels[kind]}</td>
                <td className="mono">{id.slice(-8)}</td>
                <td>{reason.replaceAll('_', ' ')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {planned > actions.length && <p className="hint">Showing the first {count(actions.length)}.</p>}
    </>
  );
}
