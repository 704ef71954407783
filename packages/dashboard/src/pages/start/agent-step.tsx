import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { loadTemplates, useTemplates } from '../../data/templates.ts';
import { useAction } from '../../data/use-action.ts';
import { CopyButton } from '../../ui/copy-button.tsx';
import { Button, Failure } from '../../ui/parts.tsx';

/** The default agent gets its folder, and prompt files, tools and limits of a template. */
export function AgentStep({ folder, onDone, onLater }: { readonly folder: string; readonly onDone: () => void; readonly onLater: () => void }) {
  const { client, defaultAgentId } = useSession();
  const { data: templates = [] } = useTemplates();
  const [id, setId] = useState('assistant');
  const applying = useAction();

  const apply = async (): Promise<void> => {
    const { templates: all, applyTemplate } = await loadTemplates();
    const template = all.find((one) => one.id === id);
    if (template === undefined) throw new Error(`Unknown template: ${id}`);
    await applyTemplate(client, { agentId: defaultAgentId, template, all });
    onDone();
  };

  return (
    <form
      className="start-form"
      onSubmit={(event) => {
        event.preventDefault();
        applying.run(apply);
      }}
    >
      <fieldset>
        <legend>{t('What is it for?')}</legend>
        <div className="start-templates">
          {templates.map((template) => (
            <label key={template.id} className="start-template">
              <input type="radio" name="template" value={template.id} checked={template.id === id} onChange={() => setId(template.id)} />
              <span>
                <strong>{template.title}</strong>
                <span>{template.summary}</span>
                <span className="hint">{template.tools.join(' · ')}</span>
              </span>
            </label>
          ))}
        </div>
      </fieldset>
      <div className="start-line">
        <span className="hint">{t('Its folder, where you put files for it:')}</span>
        <code>{folder}</code>
        <CopyButton text={folder} label={t('Copy the path')} />
      </div>
      {applying.error !== undefined && <Failure error={applying.error} />}
      <div className="start-actions">
        <Button submit look="primary" disabled={applying.busy || templates.length === 0}>
          {applying.busy ? t('Applying…') : t('Apply the template')}
        </Button>
        <Button look="quiet" onClick={onLater}>
          {t('Later')}
        </Button>
      </div>
      <p className="hint">{t('Files that you changed are kept. Everything can be changed later on the page of the agent.')}</p>
    </form>
  );
}
