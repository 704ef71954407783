import type { ParamsInput } from '@gatehouse/contract';
import { useId, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure, Field } from '../../ui/parts.tsx';
import type { Agent } from './agent-card.tsx';

type Profile = Agent['config']['tools']['profile'];
const profiles: readonly Profile[] = ['none', 'minimal', 'coding', 'messaging', 'supervisor', 'full'];

interface Draft {
  readonly id: string;
  readonly name: string;
  readonly model: string;
  readonly instructions: string;
  readonly maxSteps: string;
  readonly profile: Profile;
}

const newAgent: Draft = { id: '', name: '', model: '', instructions: '', maxSteps: '150', profile: 'minimal' };

function draftOf({ agentId, config: { name, model = '', instructions, maxSteps, tools } }: Agent): Draft {
  return { id: agentId, name, model, instructions, maxSteps: String(maxSteps), profile: tools.profile };
}

function configOf({ name, model, instructions, maxSteps, profile }: Draft): NonNullable<ParamsInput<'agents.create'>['config']> {
  return {
    ...(name.trim() !== '' && { name: name.trim() }),
    ...(model.trim() !== '' && { model: model.trim() }),
    instructions,
    maxSteps: Number(maxSteps),
    tools: { profile },
  };
}

/** Creates an agent, or edits the most important keys of one; the agent's page has all others. */
export function AgentForm({
  agent,
  models,
  onClose,
  onDone,
}: {
  readonly agent: Agent | undefined;
  readonly models: readonly string[];
  readonly onClose: () => void;
  readonly onDone: (agentId: string) => void;
}) {
  const { client } = useSession();
  const [draft, setDraft] = useState(() => (agent === undefined ? newAgent : draftOf(agent)));
  const { busy, error, run } = useAction();

  const save = async (): Promise<void> => {
    const config = configOf(draft);
    const agentId = draft.id.trim();
    if (agent === undefined) await client.call('agents.create', { agentId, config });
    else {
      // An emptied field returns to its default.
      const reset = { ...(draft.name.trim() === '' && { name: null }), ...(draft.model.trim() === '' && { model: null }) };
      await client.call('agents.update', { agentId, config: { ...config, ...reset } });
    }
    onDone(agentId);
  };

  return (
    <Dialog title={agent === undefined ? 'New agent' : `Edit ${agent.agentId}`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          run(save);
        }}
      >
        <AgentFields draft={draft} isNew={agent === undefined} models={models} change={(part) => setDraft({ ...draft, ...part })} />
        {error !== undefined && <Failure error={error} />}
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button submit look="primary" disabled={busy}>
            {busy ? 'Saving…' : agent === undefined ? 'Create' : 'Save'}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

function AgentFields({
  draft,
  isNew,
  models,
  change,
}: {
  readonly draft: Draft;
  /** The id of an agent can't be changed. */
  readonly isNew: boolean;
  readonly models: readonly string[];
  readonly change: (part: Partial<Draft>) => void;
}) {
  const listId = useId();
  return (
    <div className="dialog-body">
      {isNew && (
        <Field label="Id" hint="Lower-case letters, digits, - and _. Identifies the agent in every call.">
          {(field, hint) => (
            <input
              id={field}
              aria-describedby={hint}
              required
              pattern="[a-z0-9]([a-z0-9_\-]{0,62}[a-z0-9])?"
              value={draft.id}
              onChange={(event) => change({ id: event.target.value })}
            />
          )}
        </Field>
      )}
      <Field label="Name" hint="The agent's display name.">
        {(field, hint) => (
          <input id={field} aria-describedby={hint} maxLength={128} value={draft.name} onChange={(event) => change({ name: event.target.value })} />
        )}
      </Field>
      <Field label="Model" hint="provider/model. Leave empty to use the first model found.">
        {(field, hint) => (
          <>
            <input id={field} aria-describedby={hint} list={listId} value={draft.model} onChange={(event) => change({ model: event.target.value })} />
            <datalist id={listId}>
              {models.map((one) => (
                <option key={one} value={one} />
              ))}
            </datalist>
          </>
        )}
      </Field>
      <Field label="Instructions" hint="Added to the system prompt.">
        {(field, hint) => (
          <textarea
            id={field}
            aria-describedby={hint}
            rows={5}
            maxLength={65536}
            value={draft.instructions}
            onChange={(event) => change({ instructions: event.target.value })}
          />
        )}
      </Field>
      <div className="field-pair">
        <Field label="Tools">
          {(field) => (
            <select
              id={field}
              value={draft.profile}
              onChange={(event) => change({ profile: profiles.find((one) => one === event.target.value) ?? 'minimal' })}
            >
              {profiles.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Steps per turn">
          {(field) => (
            <input
              id={field}
              type="number"
              required
              min={1}
              max={1000}
              value={draft.maxSteps}
              onChange={(event) => change({ maxSteps: event.target.value })}
            />
          )}
        </Field>
      </div>
    </div>
  );
}
