import type { ParamsInput } from '@gatehouse/contract';
import { useId, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure, Field } from '../../ui/parts.tsx';
import type { Agent } from './agents-page.tsx';

type Profile = Agent['config']['tools']['profile'];
const profiles: readonly Profile[] = ['none', 'minimal', 'coding', 'messaging', 'supervisor', 'full'];

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
  const [id, setId] = useState('');
  const [name, setName] = useState(agent?.config.name ?? '');
  const [model, setModel] = useState(agent?.config.model ?? '');
  const [instructions, setInstructions] = useState(agent?.config.instructions ?? '');
  const [maxSteps, setMaxSteps] = useState(String(agent?.config.maxSteps ?? 150));
  const [profile, setProfile] = useState<Profile>(agent?.config.tools.profile ?? 'minimal');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const listId = useId();

  const save = (): void => {
    setBusy(true);
    setError(undefined);
    const config: NonNullable<ParamsInput<'agents.create'>['config']> = {
      ...(name.trim() !== '' && { name: name.trim() }),
      ...(model.trim() !== '' && { model: model.trim() }),
      instructions,
      maxSteps: Number(maxSteps),
      tools: { profile },
    };
    const done =
      agent === undefined
        ? client.call('agents.create', { agentId: id.trim(), config })
        : // An emptied field returns to its default.
          client.call('agents.update', {
            agentId: agent.agentId,
            config: { ...config, ...(name.trim() === '' && { name: null }), ...(model.trim() === '' && { model: null }) },
          });
    done.then(
      () => onDone(agent?.agentId ?? id.trim()),
      (failure: unknown) => {
        setError(failure);
        setBusy(false);
      },
    );
  };

  return (
    <Dialog title={agent === undefined ? 'New agent' : `Edit ${agent.agentId}`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          save();
        }}
      >
        <div className="dialog-body">
          {agent === undefined && (
            <Field label="Id" hint="Lower-case letters, digits, - and _. Identifies the agent in every call.">
              {(field, hint) => (
                <input
                  id={field}
                  aria-describedby={hint}
                  required
                  pattern="[a-z0-9]([a-z0-9_\-]{0,62}[a-z0-9])?"
                  value={id}
                  onChange={(event) => setId(event.target.value)}
                />
              )}
            </Field>
          )}
          <Field label="Name" hint="The agent's display name.">
            {(field, hint) => (
              <input id={field} aria-describedby={hint} maxLength={128} value={name} onChange={(event) => setName(event.target.value)} />
            )}
          </Field>
          <Field label="Model" hint="provider/model. Leave empty to use the first model found.">
            {(field, hint) => (
              <>
                <input id={field} aria-describedby={hint} list={listId} value={model} onChange={(event) => setModel(event.target.value)} />
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
                value={instructions}
                onChange={(event) => setInstructions(event.target.value)}
              />
            )}
          </Field>
          <div className="field-pair">
            <Field label="Tools">
              {(field) => (
                <select id={field} value={profile} onChange={(event) => setProfile(profiles.find((one) => one === event.target.value) ?? 'minimal')}>
                  {profiles.map((one) => (
                    <option key={one}>{one}</option>
                  ))}
                </select>
              )}
            </Field>
            <Field label="Steps per turn">
              {(field) => (
                <input id={field} type="number" required min={1} max={1000} value={maxSteps} onChange={(event) => setMaxSteps(event.target.value)} />
              )}
            </Field>
          </div>
        </div>
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
