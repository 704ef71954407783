import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { type FieldErrors, fieldErrors } from '../../data/field-errors.ts';
import { useStore } from '../../data/store.ts';
import { useAction } from '../../data/use-action.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { DraftField } from '../../ui/draft-field.tsx';
import { Button, Failure } from '../../ui/parts.tsx';
import { shortId } from './labels.ts';

const empty = { task: '', agent: '', model: '', maxSteps: '', objective: '', expectedOutputs: '' };

/** Starts a sub-agent whose result is sent to the inbox. */
export function SpawnDialog({
  initial,
  onClose,
  onDone,
}: {
  /** What an earlier run was started with, to change and run again. */
  readonly initial?: { readonly task: string; readonly agent: string };
  readonly onClose: () => void;
  readonly onDone: (text: string) => void;
}) {
  const { client, agents, defaultAgentId } = useSession();
  const agentIds = useStore(agents);
  const [draft, setDraft] = useState({ ...empty, agent: defaultAgentId, ...initial });
  const { busy, error, run } = useAction();
  const errors: FieldErrors = fieldErrors(error);
  const set = (part: Partial<typeof empty>): void => setDraft({ ...draft, ...part });
  const start = async (): Promise<void> => {
    const { task, agent, model, maxSteps, objective, expectedOutputs } = draft;
    const outputs = expectedOutputs.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
    const { runId, queued } = await client.call('session.spawn', {
      task,
      agent,
      ...(model.trim() !== '' && { model: model.trim() }),
      ...(maxSteps !== '' && { maxSteps: Number(maxSteps) }),
      ...(objective.trim() !== '' && { objective: objective.trim() }),
      ...(outputs.length > 0 && { expectedOutputs: outputs }),
    });
    onDone(
      t('Sub-agent {runId} {queued}. Its result will arrive in your inbox.', {
        runId: shortId(runId),
        queued: queued === true ? t('is queued') : t('started'),
      }),
    );
  };
  return (
    <Dialog title={initial === undefined ? t('Start a sub-agent') : t('Run again')} onClose={onClose} wide>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          run(start);
        }}
      >
        <div className="dialog-body">
          <DraftField errors={errors} path="task" label={t('Task')} hint={t('The sub-agent sees nothing else.')}>
            {(own) => <textarea {...own} rows={5} value={draft.task} onChange={(event) => set({ task: event.target.value })} />}
          </DraftField>
          <div className="field-pair">
            <DraftField errors={errors} path="agent" label={t('Agent')}>
              {(own) => (
                <select {...own} value={draft.agent} onChange={(event) => set({ agent: event.target.value })}>
                  {[...new Set([defaultAgentId, ...agentIds])].map((id) => (
                    <option key={id}>{id}</option>
                  ))}
                </select>
              )}
            </DraftField>
            <DraftField errors={errors} path="maxSteps" label={t('Maximum steps')} hint={t('Leave empty to use the configured limit.')}>
              {(own) => (
                <input {...own} type="number" min={1} max={1000} value={draft.maxSteps} onChange={(event) => set({ maxSteps: event.target.value })} />
              )}
            </DraftField>
          </div>
          <details className="part">
            <summary>{t('More')}</summary>
            <DraftField errors={errors} path="model" label={t('Model')} hint={t("Leave empty to use the agent's model.")}>
              {(own) => <input {...own} className="mono" value={draft.model} onChange={(event) => set({ model: event.target.value })} />}
            </DraftField>
            <DraftField errors={errors} path="objective" label={t('Objective')}>
              {(own) => <input {...own} value={draft.objective} onChange={(event) => set({ objective: event.target.value })} />}
            </DraftField>
            <DraftField errors={errors} path="expectedOutputs" label={t('Expected outputs')} hint={t('One per line.')}>
              {(own) => (
                <textarea {...own} rows={3} value={draft.expectedOutputs} onChange={(event) => set({ expectedOutputs: event.target.value })} />
              )}
            </DraftField>
          </details>
        </div>
        {error !== undefined && <Failure error={error} title={t('Failed to start.')} />}
        <footer>
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button submit look="primary" disabled={busy || draft.task.trim() === ''}>
            {busy ? t('Starting…') : t('Start')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
