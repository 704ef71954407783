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
    onDone(`Sub-agent ${shortId(runId)} ${queued === true ? 'is queued' : 'started'}. Its result will arrive in your inbox.`);
  };
  return (
    <Dialog title={initial === undefined ? 'Start a sub-agent' : 'Run again'} onClose={onClose} wide>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          run(start);
        }}
      >
        <div className="dialog-body">
          <DraftField errors={errors} path="task" label="Task" hint="The sub-agent sees nothing else.">
            {(own) => <textarea {...own} rows={5} value={draft.task} onChange={(event) => set({ task: event.target.value })} />}
          </DraftField>
          <div className="field-pair">
            <DraftField errors={errors} path="agent" label="Agent">
              {(own) => (
                <select {...own} value={draft.agent} onChange={(event) => set({ agent: event.target.value })}>
                  {[...new Set([defaultAgentId, ...agentIds])].map((id) => (
                    <option key={id}>{id}</option>
                  ))}
                </select>
              )}
            </DraftField>
            <DraftField errors={errors} path="maxSteps" label="Maximum steps" hint="Leave empty to use the configured limit.">
              {(own) => (
                <input {...own} type="number" min={1} max={1000} value={draft.maxSteps} onChange={(event) => set({ maxSteps: event.target.value })} />
              )}
            </DraftField>
          </div>
          <details className="part">
            <summary>More</summary>
            <DraftField errors={errors} path="model" label="Model" hint="Leave empty to use the agent's model.">
              {(own) => <input {...own} className="mono" value={draft.model} onChange={(event) => set({ model: event.target.value })} />}
            </DraftField>
            <DraftField errors={errors} path="objective" label="Objective">
              {(own) => <input {...own} value={draft.objective} onChange={(event) => set({ objective: event.target.value })} />}
            </DraftField>
            <DraftField errors={errors} path="expectedOutputs" label="Expected outputs" hint="One per line.">
              {(own) => (
                <textarea {...own} rows={3} value={draft.expectedOutputs} onChange={(event) => set({ expectedOutputs: event.target.value })} />
              )}
            </DraftField>
          </details>
        </div>
        {error !== undefined && <Failure error={error} title="Failed to start." />}
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button submit look="primary" disabled={busy || draft.task.trim() === ''}>
            {busy ? 'Starting…' : 'Start'}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
