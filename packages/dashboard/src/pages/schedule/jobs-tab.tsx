import { t } from '../../language.ts';
import { useEffect, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { navigate } from '../../router.ts';
import { AgentFilter } from '../../ui/agent-filter.tsx';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Confirm } from '../../ui/dialog.tsx';
import { spanText } from '../../ui/elapsed.tsx';
import { Badge, Button, Empty, Failure, Notice, Skeleton } from '../../ui/parts.tsx';
import { When } from '../../ui/when.tsx';
import { BackfillDialog } from './backfill-dialog.tsx';
import { JobDialog } from './job-dialog.tsx';
import type { Job } from './job-draft.ts';
import { RunsDialog } from './runs-dialog.tsx';
import { LastRun } from './last-run.tsx';
import { spans, TimeLine } from './time-line.tsx';
import { upcomingRuns } from './upcoming.ts';
import { lifecycleLabel, nextRunOf, payloadNames, payloadText, scheduleText } from './labels.ts';

type Asked = 'new' | { readonly edit: Job } | { readonly runs: Job } | { readonly backfill: Job } | { readonly remove: Job };

const shown = 200;
/** Interval at which the timeline moves with the clock. */
const redrawMs = 60_000;

/** Lists jobs with their last and next runs and actions; `named` is the id of a job whose runs are shown, or `new`. */
export function JobsTab({ named }: { readonly named: string | undefined }) {
  const { client } = useSession();
  const [agentId, setAgentId] = useState<string>();
  const [spanMs, setSpanMs] = useState<number>(spans[0].ms);
  const [asked, setAsked] = useState<Asked>();
  const { busy, error, run } = useAction();
  const [outcome, setOutcome] = useState<string>();
  const loaded = useLoad(
    ['cron.list', agentId, spanMs],
    async (signal) => {
      const listed = await client.call('cron.list', { limit: shown, agentId }, { signal });
      const nowMs = Date.now();
      return { ...listed, nowMs, spanMs, rows: await upcomingRuns(client, listed.jobs, nowMs, nowMs + spanMs, signal) };
    },
    { changedBy: ['scheduler:cron_'], keepsPrevious: () => true },
  );
  const { data, reload } = loaded;
  useEffect(() => {
    const timer = setInterval(reload, redrawMs);
    return () => clearInterval(timer);
  }, [reload]);
  const [lastNamed, setLastNamed] = useState<string>();
  const job = data?.jobs.find(({ id }) => id === named);
  const opened: Asked | undefined = named === 'new' ? 'new' : job === undefined ? undefined : { runs: job };
  // Again when it is named again after it was closed.
  if (named !== lastNamed && (named === undefined || opened !== undefined)) {
    setLastNamed(named);
    if (opened !== undefined) setAsked(opened);
  }
  useEffect(() => {
    // The dialog may end after the user has gone elsewhere.
    if (named === 'new') navigate('/schedule', { replace: true });
  }, [named]);
  const close = (): void => {
    setAsked(undefined);
    navigate('/schedule', { replace: true });
  };
  const done = (text: string): void => {
    setOutcome(text);
    setAsked(undefined);
    reload();
  };
  const begin = (work: () => Promise<string>): void => {
    setOutcome(undefined);
    run(() => work().then(done));
  };
  const start = async (job: Job): Promise<string> => {
    await client.call('cron.run', { jobName: job.id, agentId: job.agentId });
    return t('Started {name}.', { name: job.name });
  };
  const pause = async (job: Job, paused: boolean): Promise<string> => {
    await client.call('cron.update', { jobId: job.id, paused });
    return `${job.name} ${paused ? 'paused' : 'resumed'}.`;
  };

  const [builtIn = [], authored = []] = [true, false].map((wanted) => data?.jobs.filter(({ source }) => (source === 'built_in') === wanted));
  const listOf = (label: string, jobs: readonly Job[]) =>
    jobs.length > 0 && (
      <DataTable
        label={label}
        columns={jobColumns}
        rows={jobs}
        keyOf={({ id }) => id}
        actions={(one) => (
          <JobActions
            job={one}
            busy={busy}
            onAsk={setAsked}
            onRun={() => begin(() => start(one))}
            onPause={(paused) => begin(() => pause(one, paused))}
          />
        )}
      />
    );

  return (
    <>
      <div className="toolbar">
        <fieldset className="chips">
          <legend className="visually-hidden">{t('Length of the timeline')}</legend>
          {spans.map(({ ms, text }) => (
            <button key={ms} type="button" className="chip" aria-pressed={ms === spanMs} onClick={() => setSpanMs(ms)}>
              {text}
            </button>
          ))}
        </fieldset>
        <AgentFilter value={agentId} onChange={setAgentId} />
        <span className="grow" />
        <Button icon="plus" look="primary" onClick={() => setAsked('new')}>
          {t('New job')}
        </Button>
      </div>
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {error !== undefined && <Failure error={error} />}
      {loaded.error !== undefined && <Failure error={loaded.error} onRetry={reload} />}
      {data === undefined && loaded.loading && <Skeleton lines={5} />}
      {data?.jobs.length === 0 && (
        <Empty title={t('No jobs yet')}>
          <p>{t('A job runs an agent turn, sends an event to a heartbeat, or delivers a text on a schedule.')}</p>
        </Empty>
      )}
      {data !== undefined && data.rows.length > 0 && <TimeLine rows={data.rows} nowMs={data.nowMs} spanMs={data.spanMs} />}
      {data !== undefined && data.jobs.length > 0 && (
        <>
          {listOf(t('Jobs'), authored)}
          {builtIn.length > 0 && (
            <details open={authored.length === 0}>
              <summary className="hint">{plural(builtIn.length, 'built-in job')}</summary>
              {listOf(t('Built-in jobs'), builtIn)}
            </details>
          )}
        </>
      )}
      {data !== undefined && data.total > data.jobs.length && (
        <p className="hint">{t('Showing {jobs} of {total} jobs.', { jobs: data.jobs.length, total: data.total })}</p>
      )}
      {asked !== undefined && <JobsDialog asked={asked} onClose={close} onDone={done} />}
    </>
  );
}

/** The dialog that the user has asked for. */
function JobsDialog({ asked, onClose, onDone }: { readonly asked: Asked; readonly onClose: () => void; readonly onDone: (text: string) => void }) {
  const { client } = useSession();
  if (asked === 'new') return <JobDialog job={undefined} onClose={onClose} onDone={onDone} />;
  if ('edit' in asked) return <JobDialog job={asked.edit} onClose={onClose} onDone={onDone} />;
  if ('backfill' in asked) return <BackfillDialog job={asked.backfill} onClose={onClose} onDone={onDone} />;
  if ('runs' in asked) return <RunsDialog job={asked.runs} onClose={onClose} />;
  return (
    <Confirm
      title={t('Delete job {name}?', { name: asked.remove.name })}
      action={t('Delete')}
      onClose={onClose}
      run={async () => onDone(t('{jobName} deleted.', { jobName: (await client.call('cron.remove', { jobId: asked.remove.id })).jobName }))}
    >
      <p>{t('Its run history is deleted too. To keep both, pause the job instead.')}</p>
    </Confirm>
  );
}

const jobColumns: readonly Column<Job>[] = [
  {
    key: 'name',
    title: t('Job'),
    value: ({ name }) => name,
    draw: ({ name, payload, agentId }) => (
      <>
        <span className="task-name" dir="auto" title={name}>
          {name}
        </span>
        <p className="hint cut-lines" dir="auto">
          {payloadText(payload)}
        </p>
        <p className="hint">{`${payloadNames[payload.kind]} · ${agentId}`}</p>
      </>
    ),
  },
  {
    key: 'last',
    title: t('Last result'),
    wide: true,
    value: ({ lastRun }) => lastRun?.status ?? null,
    draw: ({ lastRun }) => (lastRun === undefined ? <span className="hint">{t('never ran')}</span> : <LastRun run={lastRun} />),
  },
  {
    key: 'duration',
    title: t('Duration'),
    align: 'right',
    descendingFirst: true,
    value: ({ lastRun }) => lastRun?.durationMs ?? null,
    draw: ({ lastRun }) => (lastRun?.durationMs === undefined ? '' : spanText(lastRun.durationMs)),
  },
  {
    key: 'next',
    title: t('Next'),
    value: nextRunOf,
    draw: (job) => {
      const next = nextRunOf(job);
      return next === null ? <span className="hint">{t('none')}</span> : <When atMs={next} />;
    },
  },
  {
    key: 'schedule',
    title: t('Schedule'),
    value: ({ schedule }) => scheduleText(schedule),
    draw: ({ schedule, lifecycle }) => {
      const { text, tone } = lifecycleLabel(lifecycle);
      return (
        <>
          <span className="mono">{scheduleText(schedule)}</span>
          <p>
            <Badge tone={tone}>{text}</Badge>
          </p>
        </>
      );
    },
  },
];

interface JobActionsProps {
  readonly job: Job;
  readonly busy: boolean;
  readonly onAsk: (asked: Asked) => void;
  readonly onRun: () => void;
  readonly onPause: (paused: boolean) => void;
}

function JobActions({ job, busy, onAsk, onRun, onPause }: JobActionsProps) {
  const { state } = job.lifecycle;
  const mayChange = job.source === 'authored';
  const isPaused = state === 'paused';
  return (
    <>
      <Button small disabled={busy} label={t('Run now: {name}', { name: job.name })} onClick={onRun}>
        {t('Run now')}
      </Button>
      <Button small label={t('Runs of {name}', { name: job.name })} onClick={() => onAsk({ runs: job })}>
        {t('Runs')}
      </Button>
      {mayChange && job.schedule.kind !== 'at' && (
        <Button small label={t('Back-fill {name}', { name: job.name })} onClick={() => onAsk({ backfill: job })}>
          {t('Back-fill')}
        </Button>
      )}
      {mayChange && (state === 'scheduled' || isPaused) && (
        <>
          <Button small disabled={busy} label={`${isPaused ? t('Resume') : t('Pause')} ${job.name}`} onClick={() => onPause(!isPaused)}>
            {isPaused ? t('Resume') : t('Pause')}
          </Button>
          <Button small icon="edit" label={t('Edit {name}', { name: job.name })} onClick={() => onAsk({ edit: job })}>
            {t('Edit')}
          </Button>
        </>
      )}
      {mayChange && (
        <Button small icon="trash" label={t('Delete {name}', { name: job.name })} onClick={() => onAsk({ remove: job })}>
          {t('Delete')}
        </Button>
      )}
    </>
  );
}
