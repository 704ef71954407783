import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { dateTime, money, plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Empty, Failure, Field, Skeleton } from '../../ui/parts.tsx';
import type { Job } from './job-draft.ts';

const maxTimes = 100;

/** Lists the missed times of a job, or those of a range that have not run, and runs them. */
export function BackfillDialog({
  job,
  onClose,
  onDone,
}: {
  readonly job: Job;
  readonly onClose: () => void;
  readonly onDone: (text: string) => void;
}) {
  const { client } = useSession();
  const [from, setFrom] = useState('');
  const [to, setTo] = useState('');
  const action = useAction();
  const fromMs = timeOf(from);
  const toMs = fromMs === undefined ? undefined : timeOf(to);
  const params = { jobId: job.id, fromMs, toMs, limit: maxTimes };
  const found = useLoad(['cron.backfill', job.id, fromMs, toMs], (signal) => client.call('cron.backfill', { ...params, dryRun: true }, { signal }), {
    changedBy: ['scheduler:cron_'],
  });
  const times = found.data?.timesMs ?? [];
  const run = async (): Promise<void> => {
    const { timesMs } = await client.call('cron.backfill', params);
    onDone(t('{times} of {name} queued.', { times: plural(timesMs.length, 'time'), name: job.name }));
  };
  return (
    <Dialog title={t('Back-fill {name}', { name: job.name })} onClose={onClose}>
      <div className="dialog-body">
        <div className="field-pair">
          <Field label={t('From')} hint={t('Leave empty for the missed times.')}>
            {(id, hint) => (
              <input id={id} aria-describedby={hint} type="datetime-local" value={from} onChange={({ target }) => setFrom(target.value)} />
            )}
          </Field>
          <Field label={t('To')} hint={t('Leave empty for now.')}>
            {(id, hint) => (
              <input
                id={id}
                aria-describedby={hint}
                type="datetime-local"
                disabled={from === ''}
                value={to}
                onChange={({ target }) => setTo(target.value)}
              />
            )}
          </Field>
        </div>
        {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
        {found.data === undefined && found.loading && <Skeleton lines={3} />}
        {found.data !== undefined && times.length === 0 && <Empty title={t('Every time has run')} />}
        {times.length > 0 && (
          <>
            <p className="hint">
              {found.data?.more === true
                ? t('The oldest {times} of more. They run one after another.', { times: plural(times.length, 'time') })
                : t('{times}, which run one after another.', { times: plural(times.length, 'time') })}
              {typeof found.data?.costUsd === 'number' && ` ${t('Estimated cost: {cost}.', { cost: money(found.data.costUsd) })}`}
            </p>
            <ul className="history" aria-label={t('Times to run')}>
              {times.map((atMs) => (
                <li key={atMs}>
                  <time dateTime={new Date(atMs).toISOString()}>{dateTime(atMs)}</time>
                </li>
              ))}
            </ul>
          </>
        )}
        {action.error !== undefined && <Failure error={action.error} />}
      </div>
      <footer>
        <Button onClick={onClose}>{t('Cancel')}</Button>
        <Button look="primary" disabled={action.busy || times.length === 0 || found.loading} onClick={() => action.run(run)}>
          {t('Run')}
        </Button>
      </footer>
    </Dialog>
  );
}

/** Returns the time of a `datetime-local` field; undefined while it is empty or incomplete. */
function timeOf(text: string): number | undefined {
  const atMs = new Date(text).getTime();
  return Number.isNaN(atMs) ? undefined : atMs;
}
