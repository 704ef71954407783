import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { type FieldErrors, fieldErrors } from '../../data/field-errors.ts';
import { useStore } from '../../data/store.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { DraftField } from '../../ui/draft-field.tsx';
import { Button, Failure } from '../../ui/parts.tsx';
import { shortId } from './words.ts';

const empty = { task: '', agent: '', model: '', maxSteps: '', objective: '', expectedOutputs: '' };

/** Starts a sub-agent whose result comes into the inbox. */
export function SpawnDialog({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: (words: string) => void }) {
  const { client, agents, defaultAgentId } = useSession();
  const agentIds = useStore(agents);
  const [draft, setDraft] = useState({ ...empty, agent: defaultAgentId });
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const errors: FieldErrors = fieldErrors(error);
  const set = (part: Partial<typeof empty>): void => setDraft({ ...draft, ...part });
  const start = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    const { task, agent, model, maxSteps, objective, expectedOutputs } = draft;
    const outputs = expectedOutputs.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
    try {
      const { runId, queued } = await client.call('session.spawn', {
        task,
        agent,
        ...(model.trim() !== '' && { model: model.trim() }),
        ...(maxSteps !== '' && { maxSteps: Number(maxSteps) }),
        ...(objective.trim() !== '' && { objective: objective.trim() }),
        ...(outputs.length > 0 && { expectedOutputs: outputs }),
      });
      onDone(`The sub-agent ${shortId(runId)} ${queued === true ? 'waits for a place' : 'has begun'}; its result comes into your inbox.`);
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <Dialog title="Start a sub-agent" onClose={onClose} wide>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void start();
        }}
      >
        <div className="dialog-body">
          <DraftField errors={errors} path="task" label="Task" hint="It knows nothing else.">
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
            <DraftField errors={errors} path="maxSteps" label="Steps at most" hint="Empty: as configured.">
              {(own) => (
                <input {...own} type="number" min={1} max={1000} value={draft.maxSteps} onChange={(event) => set({ maxSteps: event.target.value })} />
              )}
            </DraftField>
          </div>
          <details className="part">
            <summary>More</summary>
            <DraftField errors={errors} path="model" label="Model" hint="Empty: that of the agent.">
              {(own) => <input {...own} className="mono" value={draft.model} onChange={(event) => set({ model: event.target.value })} />}
            </DraftField>
            <DraftField errors={errors} path="objective" label="Larger aim">
              {(own) => <input {...own} value={draft.objective} onChange={(event) => set({ objective: event.target.value })} />}
            </DraftField>
            <DraftField errors={errors} path="expectedOutputs" label="What the result must have" hint="One in each line.">
              {(own) => (
                <textarea {...own} rows={3} value={draft.expectedOutputs} onChange={(event) => set({ expectedOutputs: event.target.value })} />
              )}
            </DraftField>
          </details>
        </div>
        {error !== undefined && <Failure error={error} title="It has not begun." />}
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
