import { t, tx } from '../../language.ts';
import type { Client } from '@gatehouse/client';
import type { ParamsInput } from '@gatehouse/contract';
import { useId, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { describeError } from '../../data/errors.ts';
import { useAction } from '../../data/use-action.ts';
import { loadTemplates, useTemplates } from '../../data/templates.ts';
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
  /** Id of a template for a new agent, which then has its tools and limits. */
  readonly template: string;
}

const newAgent: Draft = { id: '', name: '', model: '', instructions: '', maxSteps: '150', profile: 'minimal', template: '' };

function draftOf({ agentId, config: { name, model = '', instructions, maxSteps, tools } }: Agent): Draft {
  return { id: agentId, name, model, instructions, maxSteps: String(maxSteps), profile: tools.profile, template: '' };
}

/** Creates an agent, with the settings and prompt files of a template when one is selected. */
async function create(client: Client, agentId: string, draft: Draft): Promise<void> {
  if (draft.template === '') return void (await client.call('agents.create', { agentId, config: configOf(draft) }));
  const { templates, writeTemplateFiles } = await loadTemplates();
  const template = templates.find(({ id }) => id === draft.template);
  if (template === undefined) throw new Error(`Unknown template: ${draft.template}`);
  const { tools: _tools, maxSteps: _maxSteps, ...own } = configOf(draft);
  await client.call('agents.create', { agentId, config: { ...template.config, ...own } });
  try {
    await writeTemplateFiles(client, { agentId, template, all: templates });
  } catch (cause) {
    const { message } = describeError(cause);
    throw new Error(
      `The agent ${agentId} exists now, but not all prompt files of its template: ${message} The command "gatehouse agents update ${agentId} --template ${template.id}" completes it.`,
      { cause },
    );
  }
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
    if (agent === undefined) await create(client, agentId, draft);
    else {
      // An emptied field returns to its default.
      const reset = { ...(draft.name.trim() === '' && { name: null }), ...(draft.model.trim() === '' && { model: null }) };
      await client.call('agents.update', { agentId, config: { ...config, ...reset } });
    }
    onDone(agentId);
  };

  return (
    <Dialog title={agent === undefined ? t('New agent') : t('Edit {agentId}', { agentId: agent.agentId })} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          run(save);
        }}
      >
        <AgentFields draft={draft} isNew={agent === undefined} models={models} change={(part) => setDraft({ ...draft, ...part })} />
        {error !== undefined && <Failure error={error} />}
        <footer>
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button submit look="primary" disabled={busy}>
            {busy ? t('Saving…') : agent === undefined ? t('Create') : t('Save')}
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
  const { data: templates = [] } = useTemplates();
  const template = templates.find(({ id }) => id === draft.template);
  return (
    <div className="dialog-body">
      {isNew && (
        <Field label={t('Id')} hint={t('Lower-case letters, digits, - and _. Identifies the agent in every call.')}>
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
      {isNew && (
        <Field
          label={t('Template')}
          hint={template?.summary ?? t('Prompt files, tools, approvals and budgets to start from. All of it can be changed later.')}
        >
          {(field, hint) => (
            <select id={field} aria-describedby={hint} value={draft.template} onChange={(event) => change({ template: event.target.value })}>
              <option value="">{t('None')}</option>
              {templates.map(({ id, title }) => (
                <option key={id} value={id}>
                  {title}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      <Field label={t('Name')} hint={t("The agent's display name.")}>
        {(field, hint) => (
          <input id={field} aria-describedby={hint} maxLength={128} value={draft.name} onChange={(event) => change({ name: event.target.value })} />
        )}
      </Field>
      <Field label={t('Model')} hint={t('provider/model. Leave empty to use the first model found.')}>
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
      <Field label={t('Instructions')} hint={t('Added to the system prompt.')}>
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
      {template !== undefined && <p className="hint">{tx('Tools: {tools}.', { tools: template.tools.join('; ') })}</p>}
      {template === undefined && (
        <div className="field-pair">
          <Field label={t('Tools')}>
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
          <Field label={t('Steps per turn')}>
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
      )}
    </div>
  );
}
