import { t } from '../../language.ts';
import { useSession } from '../../data/context.ts';
import { ago, count, dateTime, duration } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Badge, Button, Empty, Failure, Skeleton } from '../../ui/parts.tsx';
import type { Job } from './job-draft.ts';
import { gateLabels, runTones, type Run } from './labels.ts';
import { TraceLink } from '../../ui/object-link.tsx';
import { EffectsRefused, Waiting, WaitingReason } from '../../ui/waiting.tsx';

const shown = 50;

/** Lists the runs of a job and their outcomes. */
export function RunsDialog({ job, onClose }: { readonly job: Job; readonly onClose: () => void }) {
  const { client } = useSession();
  const found = useLoad(
    ['cron.runs', job.id],
    (signal) => client.call('cron.runs', { jobName: job.id, agentId: job.agentId, limit: shown }, { signal }),
    {
      changedBy: ['scheduler:cron_'],
    },
  );
  return (
    <Dialog title={t('Runs of {name}', { name: job.name })} onClose={onClose} wide>
      <div className="dialog-body">
        <div className="toolbar">
          <p className="hint">{t('Showing the newest {shown}.', { shown })}</p>
          <span className="grow" />
          <Button small icon="retry" onClick={found.reload}>
            {t('Refresh')}
          </Button>
        </div>
        {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
        {found.data === undefined && found.loading && <Skeleton lines={5} />}
        {found.data?.runs.length === 0 && <Empty title={t('No runs yet')} />}
        <ul className="history" aria-label={t('Runs')}>
          {found.data?.runs.map((run) => (
            <RunRow key={run.executionId} run={run} />
          ))}
        </ul>
      </div>
    </Dialog>
  );
}

function RunRow({ run }: { readonly run: Run }) {
  const {
    scheduledForMs,
    trigger,
    status,
    durationMs,
    deliveryStatus,
    errorKind,
    reason,
    cause,
    wakeGate,
    counters,
    executionId,
    waiting,
    effectsRefused,
  } = run;
  return (
    <li>
      <div className="facts-line">
        <Badge tone={runTones[status]}>{status}</Badge>
        <Waiting waiting={waiting} />
        <EffectsRefused count={effectsRefused} />
        <time dateTime={new Date(scheduledForMs).toISOString()} title={ago(scheduledForMs)}>
          {dateTime(scheduledForMs)}
        </time>
        <span>{trigger}</span>
        {durationMs !== undefined && <span>{durationMs < 1000 ? t('{duration} ms', { duration: durationMs }) : duration(durationMs / 1000)}</span>}
        {deliveryStatus !== 'not_requested' && (
          <span>
            {t('delivery {deliveryStatus}', { deliveryStatus: run.deliveryPending === true ? t('pending') : deliveryStatus.replaceAll('_', ' ') })}
          </span>
        )}
        {errorKind !== undefined && <span className="mono">{errorKind}</span>}
        {run.workKind === 'agent_turn' && <TraceLink reference={run.rootRunId} />}
      </div>
      <WaitingReason waiting={waiting} />
      {reason !== undefined && <p>{reason}</p>}
      {cause !== undefined && <p dir="auto">{cause}</p>}
      {wakeGate !== undefined && (
        <details>
          <summary>{t('Wake gate: {gateLabels}', { gateLabels: gateLabels[wakeGate.outcome] })}</summary>
          {wakeGate.reason !== undefined && <p>{wakeGate.reason}</p>}
          <pre className="raw-text">{wakeGate.logs ?? t('No output.')}</pre>
        </details>
      )}
      {counters !== undefined && counters.length > 0 && (
        <p className="hint">{counters.map(({ name, value }) => `${name.replaceAll('_', ' ')} ${count(value)}`).join(', ')}</p>
      )}
      <p className="hint mono">{executionId}</p>
    </li>
  );
}
