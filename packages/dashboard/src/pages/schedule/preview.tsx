import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useEffect, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { DraftError } from '../../data/field-errors.ts';
import { ago, dateTime, money } from '../../data/format.ts';
import { type Loaded, useLoad } from '../../data/use-load.ts';
import { type JobDraft, type ScheduleRequest, scheduleOf } from './job-draft.ts';

const settleMs = 350;
const previewed = 10;

export type Preview = Loaded<Result<'cron.preview'>>;

/** Loads the next ten run times of the draft from the gateway, a moment after the last change. */
export function usePreview(draft: JobDraft): Preview {
  const { client } = useSession();
  const key = JSON.stringify([draft.kind, draft.expr, draft.tz, draft.amount, draft.unit, draft.anchor, draft.at, draft.fold, draft.agentId]);
  const [settled, setSettled] = useState({ key, draft });
  useEffect(() => {
    const timer = setTimeout(() => setSettled({ key, draft }), settleMs);
    return () => clearTimeout(timer);
  }, [key, draft]);
  return useLoad(['cron.preview', settled.key], async (signal) => {
    const schedule: ScheduleRequest = scheduleOf(settled.draft);
    if (schedule.kind === 'at' && schedule.at === '') throw new DraftError('schedule.at', 'Enter a time.');
    return client.call('cron.preview', { schedule, count: previewed, agentId: settled.draft.agentId }, { signal });
  });
}

export function PreviewList({ preview, hasTurns }: { readonly preview: Preview; readonly hasTurns: boolean }) {
  const { timesMs, runsPerHour = 0, costPerHourUsd = null } = preview.data ?? {};
  return (
    <section className="preview" aria-label={t('Next runs')}>
      <h3>{t("Next runs, in the browser's time zone")}</h3>
      <div role="status" aria-live="polite">
        {timesMs?.length === 0 && <p className="hint">{t('This schedule never runs.')}</p>}
        {preview.error !== undefined && <p className="hint">{t('None: the schedule is invalid.')}</p>}
        <ol>
          {timesMs?.map((atMs) => (
            <li key={atMs}>
              <time dateTime={new Date(atMs).toISOString()}>{dateTime(atMs)}</time> <span className="hint">{ago(atMs)}</span>
            </li>
          ))}
        </ol>
        {hasTurns && runsPerHour > 0 && costPerHourUsd !== null && (
          <p className="hint">
            {tx("About {costPerHourUsd} per hour, based on this agent's recent turns ({toPrecision} runs per hour).", {
              costPerHourUsd: money(costPerHourUsd),
              toPrecision: runsPerHour.toPrecision(2),
            })}
          </p>
        )}
      </div>
    </section>
  );
}
