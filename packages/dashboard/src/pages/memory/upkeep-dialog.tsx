import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { count, plural } from '../../data/format.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure } from '../../ui/parts.tsx';

type Report = Result<'memory.lifecycle'>;

const actionWords = { promote: 'Promote', demote: 'Demote', evict: 'Evict' } as const;
/** A review asks a model once per conversation. */
const patienceMs = 600_000;

/** Runs the review of conversations and the lifecycle of memories now; the lifecycle shows its plan first. */
export function UpkeepDialog({
  agentId,
  onClose,
  onDone,
}: {
  readonly agentId: string;
  readonly onClose: () => void;
  readonly onDone: (words: string) => void;
}) {
  const { client } = useSession();
  const [plan, setPlan] = useState<Report>();
  const [busy, setBusy] = useState<'review' | 'plan' | 'sweep'>();
  const [error, setError] = useState<unknown>();
  const run = (what: 'review' | 'plan' | 'sweep', work: () => Promise<void>): void => {
    setBusy(what);
    setError(undefined);
    work()
      .catch(setError)
      .finally(() => setBusy(undefined));
  };
  const review = async (): Promise<void> => {
    const done = await client.call('memory.review', { agentId }, { timeoutMs: patienceMs });
    onDone(
      `Reviewed ${plural(done.conversationsReviewed, 'conversation')} of ${agentId}: ${count(done.admitted)} of ${plural(done.extracted, 'finding')} stored, ${count(done.duplicates)} known already${done.more ? '; more wait for the next run' : ''}.`,
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
    <Dialog title={`Upkeep of the memory of ${agentId}`} onClose={onClose} wide>
      <div className="dialog-body">
        <section className="panel" aria-label="Review">
          <h3>Review</h3>
          <p>Reads conversations that changed since the last one, and stores what is worth remembering. A model does it, which costs tokens.</p>
          <div>
            <Button disabled={busy !== undefined} onClick={() => run('review', review)}>
              {busy === 'review' ? 'Reviewing…' : 'Review now'}
            </Button>
          </div>
        </section>
        <section className="panel" aria-label="Lifecycle">
          <h3>Lifecycle</h3>
          <p>Promotes what is used, demotes what fades, and evicts what has expired or is beyond the limits.</p>
          <div className="actions">
            <Button
              disabled={busy !== undefined}
              onClick={() =>
                run('plan', async () => setPlan(await client.call('memory.lifecycle', { agentId, dryRun: true }, { timeoutMs: patienceMs })))
              }
            >
              {busy === 'plan' ? 'Planning…' : 'Show the plan'}
            </Button>
            {plan !== undefined && plan.promoted + plan.demoted + plan.evicted > 0 && (
              <Button look="danger" disabled={busy !== undefined} onClick={() => run('sweep', sweep)}>
                {busy === 'sweep' ? 'Sweeping…' : 'Do it'}
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
  if (planned === 0) return <p role="status">{`Nothing to do for ${plural(examined, 'memory', 'memories')}.`}</p>;
  return (
    <>
      <p role="status">
        {`Of ${plural(examined, 'memory', 'memories')}: ${count(promoted)} to promote, ${count(demoted)} to demote, ${count(evicted)} to evict${more ? ', and more after that' : ''}.`}
      </p>
      <div className="table-scroll plan-list" tabIndex={0} role="region" aria-label="The plan">
        <table>
          <thead>
            <tr>
              <th scope="col">Do</th>
              <th scope="col">Memory</th>
              <th scope="col">Because</th>
            </tr>
          </thead>
          <tbody>
            {actions.map(({ id, kind, reason }) => (
              <tr key={`${kind} ${id}`}>
                <td>{actionWords[kind]}</td>
                <td className="mono">{id.slice(-8)}</td>
                <td>{reason.replaceAll('_', ' ')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {planned > actions.length && <p className="hint">The first {count(actions.length)} are shown.</p>}
    </>
  );
}
