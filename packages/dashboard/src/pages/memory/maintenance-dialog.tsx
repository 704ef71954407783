import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { count, plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure } from '../../ui/parts.tsx';

type Report = Result<'memory.lifecycle'>;

const actionLabels = { promote: t('Promote'), demote: t('Demote'), evict: t('Evict') } as const;
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
      t('Reviewed {conversations} of {agentId}: {admitted} of {findings} stored, {duplicates} already known{more}.', {
        conversations: plural(done.conversationsReviewed, 'conversation'),
        agentId,
        admitted: count(done.admitted),
        findings: plural(done.extracted, 'finding'),
        duplicates: count(done.duplicates),
        more: done.more ? t('; more are left for the next run') : '',
      }),
    );
    onClose();
  };
  const sweep = async (): Promise<void> => {
    const done = await client.call('memory.lifecycle', { agentId, dryRun: false }, { timeoutMs: patienceMs });
    onDone(
      t('Swept: {promoted} promoted, {demoted} demoted, {evicted} evicted of {memories}.', {
        promoted: count(done.promoted),
        demoted: count(done.demoted),
        evicted: count(done.evicted),
        memories: plural(done.examined, 'memory', 'memories'),
      }),
    );
    onClose();
  };
  return (
    <Dialog title={t('Memory maintenance for {agentId}', { agentId })} onClose={onClose} wide>
      <div className="dialog-body">
        <section className="panel" aria-label={t('Review')}>
          <h3>{t('Review')}</h3>
          <p>{t('Reads conversations that changed since the last review and stores what is worth remembering. Uses a model, which costs tokens.')}</p>
          <div>
            <Button disabled={busy} onClick={() => run(review, 'review')}>
              {running === 'review' ? t('Reviewing…') : t('Review now')}
            </Button>
          </div>
        </section>
        <section className="panel" aria-label={t('Lifecycle')}>
          <h3>{t('Lifecycle')}</h3>
          <p>{t('Promotes memories that are used, demotes fading ones, and evicts expired ones and those over the limits.')}</p>
          <div className="actions">
            <Button
              disabled={busy}
              onClick={() =>
                run(async () => setPlan(await client.call('memory.lifecycle', { agentId, dryRun: true }, { timeoutMs: patienceMs })), 'plan')
              }
            >
              {running === 'plan' ? t('Planning…') : t('Show plan')}
            </Button>
            {plan !== undefined && plan.promoted + plan.demoted + plan.evicted > 0 && (
              <Button look="danger" disabled={busy} onClick={() => run(sweep, 'sweep')}>
                {running === 'sweep' ? t('Sweeping…') : t('Apply')}
              </Button>
            )}
          </div>
          {plan !== undefined && <Plan plan={plan} />}
        </section>
      </div>
      {error !== undefined && <Failure error={error} />}
      <footer>
        <Button onClick={onClose}>{t('Close')}</Button>
      </footer>
    </Dialog>
  );
}

function Plan({ plan: { examined, promoted, demoted, evicted, actions, more } }: { readonly plan: Report }) {
  const planned = promoted + demoted + evicted;
  if (planned === 0) return <p role="status">{t('Nothing to do: checked {memories}.', { memories: plural(examined, 'memory', 'memories') })}</p>;
  return (
    <>
      <p role="status">
        {t('Of {memories}: {promoted} to promote, {demoted} to demote, {evicted} to evict{more}.', {
          memories: plural(examined, 'memory', 'memories'),
          promoted: count(promoted),
          demoted: count(demoted),
          evicted: count(evicted),
          more: more ? t(', and more in later runs') : '',
        })}
      </p>
      <div className="table-scroll plan-list" tabIndex={0} role="region" aria-label={t('Plan')}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t('Action')}</th>
              <th scope="col">{t('Memory')}</th>
              <th scope="col">{t('Reason')}</th>
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
      {planned > actions.length && <p className="hint">{tx('Showing the first {actions}.', { actions: count(actions.length) })}</p>}
    </>
  );
}
