import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { usePrompts } from '../../data/prompts.ts';
import { useAction } from '../../data/use-action.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure, Field, IconButton, Skeleton } from '../../ui/parts.tsx';

interface Draft {
  readonly name: string;
  readonly text: string;
}

const empty: Draft = { name: '', text: '' };

/** The saved prompts of a person: used, written, changed and deleted. */
export function PromptsDialog({ onUse, onClose }: { readonly onUse: (text: string) => void; readonly onClose: () => void }) {
  const { client } = useSession();
  const { data, error, reload } = usePrompts();
  const [draft, setDraft] = useState<Draft>();
  const action = useAction();
  const change = (part: Partial<Draft>): void => setDraft({ ...empty, ...draft, ...part });
  const isComplete = draft !== undefined && draft.name.trim() !== '' && draft.text.trim() !== '';

  return (
    <Dialog title={t('Saved prompts')} wide onClose={onClose}>
      <form
        className="dialog-body"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isComplete) return;
          action.run(async () => {
            await client.call('prompts.save', { name: draft.name.trim(), text: draft.text });
            reload();
            setDraft(undefined);
          });
        }}
      >
        {error !== undefined && <Failure error={error} onRetry={reload} />}
        {data === undefined && error === undefined && <Skeleton lines={4} />}
        {data?.length === 0 && draft === undefined && (
          <p className="hint">{t('Save what you ask again and again; type / and its name in the chat to use it.')}</p>
        )}
        {data !== undefined && data.length > 0 && (
          <ul className="prompt-list" aria-label={t('Saved prompts')}>
            {data.map(({ name, text }) => (
              <li key={name}>
                <button
                  type="button"
                  className="prompt-use"
                  onClick={() => {
                    onUse(text);
                    onClose();
                  }}
                >
                  <span className="mono">/{name}</span>
                  <span className="hint cut" dir="auto">
                    {text}
                  </span>
                </button>
                <IconButton icon="edit" label={t('Change {name}', { name })} onClick={() => setDraft({ name, text })} />
                <IconButton
                  icon="trash"
                  label={t('Delete {name}', { name })}
                  onClick={() =>
                    action.run(async () => {
                      await client.call('prompts.delete', { name });
                      reload();
                    })
                  }
                />
              </li>
            ))}
          </ul>
        )}
        {draft !== undefined && (
          <>
            <Field label={t('Name')} hint={t('Letters, digits, - and _. A prompt of this name is replaced.')} wide>
              {(id, hint) => (
                <input id={id} aria-describedby={hint} maxLength={40} value={draft.name} onChange={(event) => change({ name: event.target.value })} />
              )}
            </Field>
            <Field label={t('Prompt')} wide>
              {(id) => (
                <textarea
                  id={id}
                  rows={6}
                  maxLength={20_000}
                  dir="auto"
                  value={draft.text}
                  onChange={(event) => change({ text: event.target.value })}
                />
              )}
            </Field>
            <div className="choices">
              <Button submit look="primary" disabled={action.busy || !isComplete}>
                {t('Save')}
              </Button>
              <Button onClick={() => setDraft(undefined)}>{t('Cancel')}</Button>
            </div>
          </>
        )}
        {action.error !== undefined && <Failure error={action.error} />}
      </form>
      {draft === undefined && (
        <footer>
          <Button icon="plus" onClick={() => setDraft(empty)}>
            {t('New prompt')}
          </Button>
        </footer>
      )}
    </Dialog>
  );
}
