import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { type FieldErrors, fieldErrors } from '../../data/field-errors.ts';
import { useStore } from '../../data/store.ts';
import { useAction } from '../../data/use-action.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { DraftField } from '../../ui/draft-field.tsx';
import { Button, Failure, Field } from '../../ui/parts.tsx';
import type { DraftFieldProps } from './draft-props.ts';
import { addParams, draftOf, emptyDraft, type Job, type JobDraft, payloadKinds, scheduleKinds, unitNames, updateParams } from './job-draft.ts';
import { PolicyFields } from './policy-fields.tsx';
import { PreviewList, usePreview } from './preview.tsx';
import { payloadNames } from './labels.ts';

const kindLabels: Readonly<Record<JobDraft['kind'], string>> = {
  cron: t('Cron expression'),
  every: t('At an interval'),
  at: t('Once, at a given time'),
  in: t('Once, after a delay'),
};

/** Creates a job, or edits one and sends only the changes. */
export function JobDialog({
  job,
  offersRun = false,
  onClose,
  onDone,
}: {
  readonly job: Job | undefined;
  /** Offers to run the changed job immediately, as its last run failed. */
  readonly offersRun?: boolean;
  readonly onClose: () => void;
  readonly onDone: (text: string) => void;
}) {
  const { client, agents, defaultAgentId } = useSession();
  const agentIds = useStore(agents);
  const [before] = useState(() => (job === undefined ? emptyDraft(defaultAgentId, localZone()) : draftOf(job, localZone())));
  const [draft, setDraft] = useState(before);
  const { busy, error, run, clearError } = useAction();
  const preview = usePreview(draft);
  const errors: FieldErrors = new Map([...fieldErrors(preview.error), ...fieldErrors(error)]);
  const change = (part: Partial<JobDraft>): void => {
    setDraft({ ...draft, ...part });
    clearError();
  };
  const save = async (runsIt: boolean): Promise<void> => {
    if (job === undefined) return onDone(t('{name} added.', { name: (await client.call('cron.add', addParams(draft))).name }));
    const { jobName } = await client.call('cron.update', updateParams(job.id, before, draft));
    if (runsIt) await client.call('cron.run', { jobName: job.id, agentId: job.agentId });
    onDone(t('{jobName} updated.', { jobName }));
  };
  const props = { draft, change, errors };
  return (
    <Dialog title={job === undefined ? t('New job') : t('Edit {name}', { name: job.name })} onClose={onClose} wide>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          run(() => save(false));
        }}
      >
        <div className="dialog-body">
          <div className="field-pair">
            <DraftField {...props} path="name" label={t('Name')}>
              {(own) => <input {...own} maxLength={200} value={draft.name} onChange={(event) => change({ name: event.target.value })} />}
            </DraftField>
            <Field label={t('Agent')}>
              {(id) => (
                <select id={id} disabled={job !== undefined} value={draft.agentId} onChange={(event) => change({ agentId: event.target.value })}>
                  {[...new Set([draft.agentId, ...agentIds])].map((one) => (
                    <option key={one}>{one}</option>
                  ))}
                </select>
              )}
            </Field>
          </div>
          <fieldset className="part">
            <legend>{t('Schedule')}</legend>
            <ScheduleFields {...props} />
            <PreviewList preview={preview} hasTurns={draft.does === 'agent_turn'} />
          </fieldset>
          <fieldset className="part">
            <legend>{t('Task')}</legend>
            <PayloadFields {...props} isEdited={job !== undefined} />
          </fieldset>
          <PolicyFields {...props} />
        </div>
        {error !== undefined && <Failure error={error} title={t('Failed to save.')} />}
        <footer>
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button submit look={offersRun ? 'plain' : 'primary'} disabled={busy}>
            {busy ? t('Saving…') : job === undefined ? t('Add') : t('Save')}
          </Button>
          {offersRun && (
            <Button look="primary" icon="retry" disabled={busy} onClick={() => run(() => save(true))}>
              {t('Save and run again')}
            </Button>
          )}
        </footer>
      </form>
    </Dialog>
  );
}

function ScheduleFields({ draft, change, errors }: DraftFieldProps) {
  const { kind } = draft;
  const span = kind === 'every' || kind === 'in';
  return (
    <>
      <DraftField errors={errors} path="schedule.kind" label={t('Runs')}>
        {(own) => (
          <select {...own} value={kind} onChange={(event) => change({ kind: scheduleKinds.find((one) => one === event.target.value) ?? 'cron' })}>
            {scheduleKinds.map((one) => (
              <option key={one} value={one}>
                {kindLabels[one]}
              </option>
            ))}
          </select>
        )}
      </DraftField>
      <div className="field-pair">
        {kind === 'cron' && (
          <DraftField
            errors={errors}
            path="schedule.expr"
            label={t('Expression')}
            hint={t('Minute, hour, day, month, day of the week; optionally seconds first.')}
          >
            {(own) => <input {...own} className="mono" value={draft.expr} onChange={(event) => change({ expr: event.target.value })} />}
          </DraftField>
        )}
        {kind === 'at' && (
          <DraftField errors={errors} path="schedule.at" label={t('Time')} hint={t('For example 2030-01-31T09:30, optionally with an offset or Z.')}>
            {(own) => <input {...own} className="mono" value={draft.at} onChange={(event) => change({ at: event.target.value })} />}
          </DraftField>
        )}
        {(kind === 'cron' || kind === 'at') && (
          <DraftField
            errors={errors}
            path="schedule.tz"
            label={t('Time zone')}
            hint={t("For example Europe/Berlin. Leave empty to use the gateway's.")}
          >
            {(own) => <input {...own} value={draft.tz} onChange={(event) => change({ tz: event.target.value })} />}
          </DraftField>
        )}
        {kind === 'at' && (
          <DraftField errors={errors} path="schedule.fold" label={t('Ambiguous local time')} hint={t('When clocks go back (DST).')}>
            {(own) => (
              <select
                {...own}
                value={draft.fold}
                onChange={({ target: { value } }) => change({ fold: value === 'earlier' || value === 'later' ? value : '' })}
              >
                <option value="">{t('reject')}</option>
                <option value="earlier">{t('use the earlier one')}</option>
                <option value="later">{t('use the later one')}</option>
              </select>
            )}
          </DraftField>
        )}
        {span && (
          <>
            <DraftField
              errors={errors}
              path={kind === 'every' ? 'schedule.everyMs' : 'schedule.seconds'}
              label={kind === 'every' ? t('Every') : t('After')}
            >
              {(own) => <input {...own} inputMode="decimal" value={draft.amount} onChange={(event) => change({ amount: event.target.value })} />}
            </DraftField>
            <Field label={t('Unit')}>
              {(id) => (
                <select
                  id={id}
                  value={draft.unit}
                  onChange={(event) => change({ unit: unitNames.find((one) => one === event.target.value) ?? 'minutes' })}
                >
                  {unitNames.map((one) => (
                    <option key={one}>{one}</option>
                  ))}
                </select>
              )}
            </Field>
          </>
        )}
        {kind === 'every' && (
          <DraftField errors={errors} path="schedule.anchorMs" label={t('Aligned to')} hint={t('Leave empty to start from now.')}>
            {(own) => (
              <input {...own} type="datetime-local" step="any" value={draft.anchor} onChange={(event) => change({ anchor: event.target.value })} />
            )}
          </DraftField>
        )}
      </div>
    </>
  );
}

function PayloadFields({ draft, change, errors, isEdited }: DraftFieldProps & { readonly isEdited: boolean }) {
  const { does } = draft;
  return (
    <>
      <DraftField errors={errors} path="payload.kind" label={t('Action')}>
        {(own) => (
          <select
            {...own}
            value={does}
            onChange={(event) => change({ does: payloadKinds.find((one) => one === event.target.value) ?? 'agent_turn' })}
          >
            {payloadKinds.map((one) => (
              <option key={one} value={one}>
                {payloadNames[one]}
              </option>
            ))}
          </select>
        )}
      </DraftField>
      <DraftField
        errors={errors}
        path={does === 'agent_turn' ? 'payload.message' : 'payload.text'}
        label={does === 'agent_turn' ? t('Message') : t('Text')}
      >
        {(own) => (
          <textarea
            {...own}
            data-focus-home={isEdited || undefined}
            rows={4}
            dir="auto"
            value={draft.text}
            onChange={(event) => change({ text: event.target.value })}
          />
        )}
      </DraftField>
      {does === 'agent_turn' && (
        <div className="field-pair">
          <DraftField errors={errors} path="payload.model" label={t('Model')} hint={t("Leave empty to use the agent's model.")}>
            {(own) => <input {...own} value={draft.model} onChange={(event) => change({ model: event.target.value })} />}
          </DraftField>
          <DraftField errors={errors} path="payload.timeoutSeconds" label={t('Timeout in seconds')} hint={t('Default: 600.')}>
            {(own) => (
              <input {...own} type="number" value={draft.timeoutSeconds} onChange={(event) => change({ timeoutSeconds: event.target.value })} />
            )}
          </DraftField>
        </div>
      )}
      {does === 'heartbeat_event' && (
        <label className="check">
          <input type="checkbox" checked={draft.wakeNow} onChange={(event) => change({ wakeNow: event.target.checked })} />
          {t('Wake the agent immediately')}
        </label>
      )}
    </>
  );
}

function localZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}
